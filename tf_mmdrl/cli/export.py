"""`mmdrl export`: the newest policy of a run as a SavedModel."""

import argparse
import pathlib

from tf_mmdrl.cli import quiet
from tf_mmdrl.core import errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl export`."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  parser.add_argument(
    "-o", "--output", metavar="DIR", help="where; RUN/export if left out"
  )


def run(args: argparse.Namespace) -> int:
  """Exports, and prints where to."""
  with quiet.loading():
    from tf_mmdrl import serving
    from tf_mmdrl.train import run_directory, runs

  path = pathlib.Path(args.directory)
  directory = run_directory.RunDirectory(path)
  target = pathlib.Path(args.output) if args.output else directory.export
  with runs.restored(path) as state:
    try:
      made = serving.publish(state.agent.return_network, target, state.step)
    except OSError as error:
      raise errors.UserError(
        f"cannot write to {str(target)!r}: {error.strerror}"
      ) from None
  print(made)
  return 0
