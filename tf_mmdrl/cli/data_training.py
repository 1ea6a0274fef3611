"""`mmdrl train --data`: learns from logged episodes, without playing."""

import argparse
from typing import TYPE_CHECKING, List

from tf_mmdrl.cli import quiet
from tf_mmdrl.core import errors
from tf_mmdrl.offline import opening
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.train import left_open, run_directory, trainer

_UNKNOWN = "logged"  # the environment's name, if the data does not say it


def settings(args: argparse.Namespace) -> List[str]:
  """What the data say of the environment, as settings below the flags'."""
  data = opening.open_dataset(args.data)
  if args.env is not None:
    with quiet.loading():
      from tf_mmdrl.offline import recording

    recording.require_same(args.env, data.description)
  found = [
    f"environment.name={data.description.environment or _UNKNOWN}",
    f"replay.data={data.path.resolve()}",
  ]
  if data.description.reward_size and args.agent is None:
    raise errors.UserError(
      f"the rewards of {args.data!r} are vectors of"
      f" {data.description.reward_size}; pass --agent joint_mmdqn"
    )
  return found


def train(
  args: argparse.Namespace,
  config: configs.Config,
  directory: "run_directory.RunDirectory",
  words: "left_open.Words",
) -> "trainer.Outcome":
  """Trains a run from its data; goes on where it stopped."""
  with quiet.loading():
    from tf_mmdrl.offline import data_run, fitting, overview
    from tf_mmdrl.train import trainer

  data = overview.open_data(
    opening.open_dataset(config.replay.data), config.agent.gamma
  )

  def make(completed, directory):
    return data_run.DataRun(
      completed,
      directory,
      specs=fitting.specs_of(data.episodes.description),
      data=data,
      is_evaluated=args.env is not None,
    )

  return trainer.train(
    config,
    directory,
    strict=args.strict,
    make=make,
    log=args.log,
    words=words,
  )


def check_flags(args: argparse.Namespace) -> None:
  """Raises for flags that have no meaning without playing."""
  for flag in ("actors", "cluster", "num_envs", "order"):
    if getattr(args, flag) is not None:
      name = flag.replace("_", "-")
      raise errors.UserError(
        f"--{name} is about playing, and --data plays nothing; leave it out"
      )
  if args.dry_run:
    raise errors.UserError(
      "--dry-run measures how fast a game is played, and --data plays nothing;"
      " leave it out"
    )


def check(config: configs.Config) -> None:
  """Raises for settings that have no meaning without playing."""
  if config.agent.n_step != 1 or config.replay.prioritized:
    raise errors.UserError(
      "logged transitions are single steps, drawn alike: --data wants"
      " agent.n_step=1 and replay.prioritized=false, got"
      f" {config.agent.n_step} and {str(config.replay.prioritized).lower()};"
      " pass them with --set"
    )
