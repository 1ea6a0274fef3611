"""The `mmdrl` command: finds the subcommand, shows errors as one line.

A subcommand is a module with `add_arguments(parser)` and `run(args) -> int`.
It imports TensorFlow inside `run`, so that help and bad flags answer at once.
"""

import argparse
import importlib
import os
import sys
from typing import Optional, Sequence

from absl import logging  # noqa: F401  (its flags: --verbosity, --logtostderr)
from absl.flags import argparse_flags

from tf_mmdrl import version
from tf_mmdrl.core import errors, exit_codes

# Subcommand -> the line `mmdrl --help` shows for it.
COMMANDS: dict[str, str] = {
  "train": "Train an agent, or go on with a run that was stopped.",
  "inspect": "Show the settings, checkpoints, step and fingerprint of a run.",
  "evaluate": "Play games with a policy of a run and print the scores.",
  "export": "Export the newest policy of a run as a SavedModel.",
  "serve": "Serve exported policies over HTTP, as TensorFlow Serving does.",
  "play": "Play games with an exported policy without its run.",
  "watch": "Write a video of games beside each action's return distribution.",
  "agents": "List the algorithms, or show one with its paper and settings.",
  "sweep": "Train games x agents x seeds, or go on with such a sweep.",
  "report": "Write tables and figures of runs beside the published scores.",
  "tensorboard": "Start TensorBoard on runs, with the scores first.",
  "doctor": "Show what this machine has, what it lacks, and how fast it is.",
  "presets": "List the presets of training, or show one with all settings.",
  "chain": "Run the paper's chain experiment: learnt and exact moments.",
  "theory": "Measure what the paper's theorems claim.",
}

EXIT_OK = exit_codes.OK
EXIT_BAD_INPUT = exit_codes.BAD_INPUT
EXIT_STOPPED = exit_codes.STOPPED
EXIT_INTERRUPTED = exit_codes.INTERRUPTED


def main(argv: Optional[Sequence[str]] = None) -> int:
  """Runs the command line; returns the exit code."""
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow
  argv = sys.argv[1:] if argv is None else list(argv)
  parser = _parser(argv)
  args = parser.parse_args(argv)
  try:
    return args.run(args)
  except errors.UserError as error:
    print(f"mmdrl: {error}", file=sys.stderr)
    return EXIT_BAD_INPUT
  except MemoryError as error:
    print(
      f"mmdrl: out of memory: {error}; a smaller replay.capacity,"
      " environment.num_envs or network.num_particles may help",
      file=sys.stderr,
    )
    return EXIT_BAD_INPUT
  except KeyboardInterrupt:
    print("mmdrl: interrupted", file=sys.stderr)
    return EXIT_INTERRUPTED
  except BrokenPipeError:  # `mmdrl ... | head`
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_OK


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
  """Shows defaults that say something."""

  def _get_help_string(self, action: argparse.Action) -> Optional[str]:
    default = action.default
    if default is None or default is False or default == []:
      return action.help
    return super()._get_help_string(action)


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
  # absl's, so that its own flags work too (mmdrl --helpfull lists them).
  parser = argparse_flags.ArgumentParser(
    prog="mmdrl",
    description="Distributional RL via moment matching (MMDQN).",
  )
  parser.add_argument(
    "--version", action="version", version=f"%(prog)s {version.__version__}"
  )
  commands = parser.add_subparsers(
    title="commands", metavar="COMMAND", required=True
  )
  wanted = next((word for word in argv if word in COMMANDS), None)
  for name, help_line in COMMANDS.items():
    command = commands.add_parser(
      name,
      help=help_line,
      description=help_line,
      formatter_class=_Formatter,
    )
    if name == wanted:  # the other modules stay unloaded
      module = importlib.import_module(f"tf_mmdrl.cli.{name}_command")
      module.add_arguments(command)
      command.set_defaults(run=module.run)
  return parser
