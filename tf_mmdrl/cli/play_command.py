"""`mmdrl play`: plays games with an exported policy, without its run."""

import argparse
import pathlib
from typing import List, Optional

from tf_mmdrl.cli import evaluate_command, quiet
from tf_mmdrl.core import errors
from tf_mmdrl.train import config as configs


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl play`."""
  parser.add_argument(
    "directory", metavar="DIR", help="of versions, from mmdrl export"
  )
  parser.add_argument("--env", help="what to play; as in the run if left out")
  parser.add_argument("--episodes", help="games; as in the run if left out")
  parser.add_argument("--epsilon", help="random actions; as in the run")
  parser.add_argument("--seed", help="of the games; as in the run")
  parser.add_argument(
    "--version", type=int, help="the exported step; the newest if left out"
  )
  parser.add_argument(
    "--risk",
    type=float,
    metavar="LEVEL",
    help="act by the CVaR of this level, in (0, 1], instead of the mean",
  )


def run(args: argparse.Namespace) -> int:
  """Plays, prints the scores, and compares them with the run's own."""
  with quiet.loading():
    from tf_mmdrl.serving import models
    from tf_mmdrl.train import playing

  if args.risk is not None and not 0 < args.risk <= 1:
    raise errors.UserError(f"--risk must lie in (0, 1], got {args.risk:g}")
  model = models.open_model(pathlib.Path(args.directory), args.version)
  recorded = playing.recorded_config(model)
  if recorded is None and args.env is None:
    raise errors.UserError(
      "the model does not say what it was made for; pass --env"
    )
  config = configs.change(recorded or configs.Config(), _settings(args))
  if args.episodes is not None:
    config = evaluate_command.exactly(config)
  played = playing.play(model, config, level=args.risk)
  evaluate_command.show(model.number, played)
  by_mean = config.evaluation.score == "mean" and args.risk is None
  if recorded == config and by_mean:
    _compare(played.mean, model.metadata.get("score"))
  return 0


def _settings(args: argparse.Namespace) -> List[str]:
  name = [] if args.env is None else [f"environment.name={args.env}"]
  return [*name, *evaluate_command.settings(args)]


def _compare(found: float, recorded: Optional[float]) -> None:
  if recorded is None:
    print("the run did not evaluate this step; there is nothing to compare")
    return
  verdict = "the same" if found == recorded else "NOT the same"
  print(f"the run itself found {recorded:.2f} at this step: {verdict}")
