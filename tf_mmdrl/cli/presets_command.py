"""`mmdrl presets`: the named configurations."""

import argparse
import json

from tf_mmdrl.cli import output, quiet
from tf_mmdrl.core import algorithms
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets

EXAMPLE = "mmdrl presets paper --agent iqn"
PAGE = "docs/training.md"
_WIDE = 120  # columns from which on a setting and its help share a line


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl presets`."""
  parser.add_argument("name", nargs="?", help="the preset to print in full")
  parser.add_argument(
    "--agent",
    help="algorithm that the preset is shown for; mmdqn if left out",
  )
  parser.add_argument(
    "--json", action="store_true", help="print it as in config.json"
  )


def run(args: argparse.Namespace) -> int:
  """Lists the presets, or prints one."""
  if args.name is None:
    rows = [(name, preset.summary) for name, preset in presets.PRESETS.items()]
    print(*output.two_columns(rows), sep="\n")
    return 0
  presets.check_name(args.name)
  if args.agent is not None:
    algorithms.check_name(args.agent)
  with quiet.loading():
    config = presets.get(args.name, args.agent).completed()
    help_lines = configs.help_lines(config)
  if args.json:
    print(json.dumps(configs.to_json(config), indent=2))
    return 0
  for name, value in configs.fields(config):
    line = f"{name}={value}"
    if output.width() < _WIDE:
      print(line)
      print(*output.wrapped(help_lines[name], "#   ", "#   "), sep="\n")
    else:
      print(f"{line:48} {help_lines[name]}")
  if args.name == presets.PUBLISHED and args.agent is None:
    others = ", ".join(algorithms.published_names())
    text = f"these are {config.agent.name}'s; --agent takes {others}"
    print(*output.wrapped(text, "# ", "# "), sep="\n")
  return 0
