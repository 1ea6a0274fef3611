"""`mmdrl export`: the newest policy of a run as a SavedModel."""

import argparse
import pathlib

from tf_mmdrl.cli import quiet, run_argument
from tf_mmdrl.core import full_disk

EXAMPLE = "mmdrl export runs/... -o policies --format onnx"
PAGE = "docs/serving.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl export`."""
  run_argument.add(parser)
  parser.add_argument(
    "-o",
    "--output",
    metavar="DIR",
    help="directory of the exported versions; RUN/export if left out",
  )
  parser.add_argument(
    "--format",
    action="append",
    default=[],
    choices=("onnx", "tflite"),
    help="write the policy in this format, too; may be given twice",
  )
  parser.add_argument(
    "--policy-saver",
    action="store_true",
    help="write what TF-Agents' SavedModelPyTFEagerPolicy loads, too",
  )


def run(args: argparse.Namespace) -> int:
  """Exports, and prints where to."""
  run_argument.require(args)
  with quiet.loading():
    from tf_mmdrl.train import exporting

    found = run_argument.restored(args)
  directory = run_argument.directory(args)
  target = pathlib.Path(args.output) if args.output else directory.export
  with found as state:
    try:
      with quiet.loading():  # converters chatter
        made = exporting.export(
          state, target, formats=args.format, policy_saver=args.policy_saver
        )
    except OSError as error:
      variables = state.agent.return_network.variables
      size = sum(v.dtype.size * v.shape.num_elements() for v in variables)
      raise full_disk.refused(target, error, size) from None
  print(made)
  for extra in sorted((made / "assets.extra").glob("*")):
    print(extra)
  return 0
