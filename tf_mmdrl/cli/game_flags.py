"""The flags of the commands that play games with an exported policy."""

import argparse
import pathlib
from typing import TYPE_CHECKING

from tf_mmdrl.cli import run_argument
from tf_mmdrl.core import errors
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.train.playing import ExportedPolicy


def add_path(parser: argparse.ArgumentParser) -> None:
  """Adds the place of the policy, for commands that also take a run."""
  parser.add_argument(
    "path",
    metavar="RUN",
    type=pathlib.Path,
    help="directory of a run, or of versions from mmdrl export",
  )


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds what to play and how."""
  run_argument.add_import(parser)
  parser.add_argument(
    "--version",
    type=int,
    help="step of the exported policy; the newest one if left out",
  )
  parser.add_argument(
    "--env", help="environment to play; that of the run if left out"
  )
  parser.add_argument(
    "--epsilon", help="share of random actions; that of the run if left out"
  )
  parser.add_argument(
    "--seed", help="seed of the games; that of the run if left out"
  )
  parser.add_argument(
    "--score",
    help="what actions maximise: mean, cvar:0.25, mean_deviation:0.5,"
    " wang:-0.75 or cpw:0.71; that of the run if left out",
  )


def wanted(
  policy: "ExportedPolicy", args: argparse.Namespace
) -> configs.Config:
  """The run's configuration with what the flags change."""
  if policy.config is None and args.env is None:
    raise errors.UserError(
      "the policy does not say what it was made for; pass --env"
    )
  given = {
    "environment.name": args.env,
    "evaluation.epsilon": args.epsilon,
    "evaluation.score": args.score,
    "system.seed": args.seed,
  }
  recorded, named = policy.config or configs.Config(), configs.Config()
  if args.env is not None:
    recorded = recorded.replace(environment={"name": args.env})
    named = named.replace(environment={"name": args.env})
  configs.refuse_imports(recorded, {*args.imports, *configs.imported(named)})
  return configs.change(
    recorded,
    [f"{name}={value}" for name, value in given.items() if value is not None],
  )
