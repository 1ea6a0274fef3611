"""The flags of the commands that play games with an exported policy."""

import argparse
import contextlib
import pathlib
from typing import TYPE_CHECKING, Any, List, Optional, Union

from tf_mmdrl.cli import run_argument
from tf_mmdrl.core import errors, run_files
from tf_mmdrl.environments import names
from tf_mmdrl.serving import directories, manifests
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.offline.target_policies import TargetPolicy
  from tf_mmdrl.train.playing import ExportedPolicy


def add_path(parser: argparse.ArgumentParser) -> None:
  """Adds the place of the policy, for commands that also take a run."""
  parser.add_argument(
    "path",
    metavar="RUN",
    type=run_argument.policies,
    help="directory of a run or of exports, or zoo:NAME",
  )


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds what to play and how."""
  run_argument.add_import(parser)
  parser.add_argument(
    "--version",
    type=int,
    help="step of the exported policy; the newest if left out",
  )
  parser.add_argument(
    "--env", help="environment to play; the run's if left out"
  )
  parser.add_argument(
    "--epsilon",
    metavar="X",
    help="share of random actions; the run's if left out",
  )
  parser.add_argument(
    "--seed", metavar="N", help="seed of the games; the run's if left out"
  )
  parser.add_argument(
    "--score",
    metavar="NAME",
    help="what actions maximise: mean, cvar:0.25, mean_deviation:0.5,"
    " wang:-0.75 or cpw:0.71; the run's if left out",
  )


def check(args: argparse.Namespace, *, is_run: bool = True) -> None:
  """Raises what needs no TensorFlow to be known.

  Args:
    args: as `add_arguments` made them.
    is_run: whether `args.path` may be a run.
  """
  check_settings(args)
  recorded = environment(args.path, args.version, is_run=is_run)
  played = recorded if args.env is None else args.env
  if played is not None:
    names.require(played)


def check_settings(args: argparse.Namespace) -> None:
  """Raises for flags whose values are none."""
  configs.check(configs.Config(), _settings(args))


def environment(
  path: pathlib.Path, version: Optional[int], *, is_run: bool = True
) -> Optional[str]:
  """What a policy was made to play, if it says so; raises if there is none.

  Args:
    path: of a run or of exports.
    version: of the export; the newest if None.
    is_run: whether it may be a run.
  """
  files = run_files.RunFiles(path)
  if is_run and (files.config_file.exists() or not directories.versions(path)):
    files.settings()  # or says that there is no run
    directories.find_of_run(path, version)
    return files.identity().environment
  number = directories.find(path, version)
  # Whoever loads a damaged version says what is wrong with it.
  recorded: Any = None
  with contextlib.suppress(errors.UserError):
    recorded = manifests.metadata(path, number).get("environment")
  return recorded if isinstance(recorded, str) else None


def wanted(
  policy: "Union[ExportedPolicy, TargetPolicy]", args: argparse.Namespace
) -> configs.Config:
  """The run's configuration with what the flags change."""
  if policy.config is None and args.env is None:
    raise errors.UserError(
      "the policy does not say what it was made for; pass --env"
    )
  recorded, named = policy.config or configs.Config(), configs.Config()
  if args.env is not None:
    recorded = recorded.replace(environment={"name": args.env})
    named = named.replace(environment={"name": args.env})
  configs.refuse_imports(recorded, {*args.imports, *configs.imported(named)})
  return configs.change(recorded, _settings(args))


def _settings(args: argparse.Namespace) -> List[str]:
  """The flags that were given, as settings."""
  given = {
    "environment.name": args.env,
    "evaluation.epsilon": args.epsilon,
    "evaluation.score": args.score,
    "system.seed": args.seed,
  }
  return [
    f"{name}={value}" for name, value in given.items() if value is not None
  ]
