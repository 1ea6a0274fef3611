"""`mmdrl evaluate`: plays games with an exported policy."""

import argparse
import pathlib
from typing import TYPE_CHECKING, List

import numpy as np

from tf_mmdrl.cli import quiet
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.evaluation import evaluator


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl evaluate`."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  parser.add_argument("--episodes", help="games; as in the run if left out")
  parser.add_argument("--epsilon", help="random actions; as in the run")
  parser.add_argument("--seed", help="of the games; as in the run")
  parser.add_argument(
    "--score",
    help="what actions maximise: mean, cvar:0.25, mean_deviation:0.5,"
    " wang:-0.75, cpw:0.71; as in the run if left out",
  )
  parser.add_argument(
    "--version", type=int, help="the exported step; the newest if left out"
  )


def run(args: argparse.Namespace) -> int:
  """Plays, and prints the scores."""
  with quiet.loading():
    from tf_mmdrl.evaluation import evaluator
    from tf_mmdrl.train import factories, run_directory, runs

  directory = run_directory.RunDirectory(pathlib.Path(args.directory))
  changes = settings(args)
  if args.score is not None:
    changes.append(f"evaluation.score={args.score}")
  config = configs.change(directory.config(), changes)
  if args.episodes is not None:
    config = exactly(config)
  policy = runs.exported(directory, args.version)
  player = evaluator.Evaluator(
    factories.environment(config, evaluation=True),
    factories.judged(config, policy.network).act,
    config.evaluation,
    factories.seeds(config).evaluation,
  )
  played = player.evaluate(policy.number)
  player.close()
  show(policy.number, played)
  return 0


def show(number: int, played: "evaluator.Evaluation") -> None:
  """Prints the scores of a policy."""
  spread = np.std(played.scores) / np.sqrt(len(played.scores))
  print(f"policy of step {number}, {len(played.scores)} games")
  print(f"score: mean {played.mean:.2f} +- {spread:.2f} (standard error)")
  print(f"       median {np.median(played.scores):.2f}")
  print(f"       from {min(played.scores):.2f} to {max(played.scores):.2f}")
  print(f"steps: mean {np.mean(played.lengths):.0f}")


def exactly(config: configs.Config) -> configs.Config:
  """As many environments as share the games evenly: so many are played."""
  group = config.evaluation
  shares = [n for n in range(1, group.num_envs + 1) if not group.episodes % n]
  return config.replace(evaluation=dict(num_envs=max(shares)))


def settings(args: argparse.Namespace) -> List[str]:
  """The flags of how to play, as settings."""
  given = {
    "evaluation.episodes": args.episodes,
    "evaluation.epsilon": args.epsilon,
    "system.seed": args.seed,
  }
  if args.episodes is not None:
    given["evaluation.steps"] = 0
  return [f"{k}={value}" for k, value in given.items() if value is not None]
