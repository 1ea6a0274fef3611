"""`mmdrl play`: `mmdrl evaluate` for a SavedModel, without its run."""

import argparse

from tf_mmdrl.cli import evaluate_command, quiet, run_argument
from tf_mmdrl.core import errors

EXAMPLE = "mmdrl play policies --episodes 100"
PAGE = "docs/serving.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl play`."""
  parser.add_argument(
    "path",
    metavar="DIR",
    type=run_argument.policies,
    help="directory of versions from mmdrl export, or zoo:NAME",
  )
  evaluate_command.add_game_arguments(parser)
  # The spelling of version 0.1.
  parser.add_argument("--risk", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
  """Plays, prints the scores, and compares them with the run's own."""
  if args.risk is not None:
    raise errors.UserError(
      f"--risk {args.risk} is now --score cvar:{args.risk}"
    )
  evaluate_command.check(args, is_run=False)
  with quiet.loading():
    from tf_mmdrl.train import playing

  policy = playing.open_export(args.path, args.version)
  return evaluate_command.evaluate(policy, args)
