"""`mmdrl evaluate`: plays games with a policy and prints the scores."""

import argparse
import dataclasses
import pathlib
from typing import TYPE_CHECKING, Optional

import numpy as np

from tf_mmdrl.cli import game_flags, output, quiet
from tf_mmdrl.core import errors, progress, score_text
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.evaluation.evaluator import Evaluation
  from tf_mmdrl.train.playing import ExportedPolicy

EXAMPLE = "mmdrl evaluate runs/... --episodes 100 --score cvar:0.25"
PAGE = "docs/training.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl evaluate`."""
  game_flags.add_path(parser)
  add_game_arguments(parser)


def add_game_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds all but the place of the policy."""
  game_flags.add_arguments(parser)
  parser.add_argument(
    "--episodes",
    metavar="N",
    help="games to play; as many as in the run if left out",
  )
  parser.add_argument(
    "-o",
    "--output",
    metavar="FILE",
    type=pathlib.Path,
    help="also write the score and the steps of each game, as .csv",
  )


def check(args: argparse.Namespace, *, is_run: bool = True) -> None:
  """Raises what needs no TensorFlow to be known."""
  game_flags.check(args, is_run=is_run)
  if args.episodes is not None:
    configs.check(configs.Config(), [f"evaluation.episodes={args.episodes}"])
  if args.output is not None:
    if args.output.suffix != ".csv":
      raise errors.UserError(f"scores end in .csv, got {str(args.output)!r}")
    output.require_place(args.output)


def run(args: argparse.Namespace) -> int:
  """Plays, prints the scores, and compares them with the run's own."""
  check(args)
  with quiet.loading():
    from tf_mmdrl.train import playing

  return evaluate(
    playing.open_policy(args.path, args.version, args.imports), args
  )


def evaluate(policy: "ExportedPolicy", args: argparse.Namespace) -> int:
  """Does what `run` does, for a policy that is open already."""
  from tf_mmdrl.train import playing

  config = game_flags.wanted(policy, args)
  if args.episodes is not None:
    config = playing.for_episodes(config, args.episodes)
  with progress.Progress(1.0, "evaluate") as shown:
    played = playing.evaluate(policy, config, shown.update)
  _show(policy.number, played)
  if args.output is not None:
    _write(args.output, played)
  if policy.config is None or config != policy.config.completed():
    return 0  # other games than the run's
  # A SavedModel's other scores may round differently, and so may choose
  # differently where two actions are as good.
  if config.evaluation.score == "mean":
    _compare(played.mean, policy.score)
  return 0


@dataclasses.dataclass(frozen=True)
class _Game:
  """A line of the file of scores."""

  game: int
  score: float
  steps: int


def _write(path: pathlib.Path, played: "Evaluation") -> None:
  games = [
    _Game(number, float(score), int(steps))
    for number, (score, steps) in enumerate(zip(played.scores, played.lengths))
  ]
  columns = [field.name for field in dataclasses.fields(_Game)]
  output.write_csv(path, columns, games)
  print(path)


def _show(number: int, played: "Evaluation") -> None:
  count = len(played.scores)
  print(f"policy of step {number}, {count} {'game' if count == 1 else 'games'}")
  if count == 1:  # one game says nothing of the spread of others
    print(f"score: {score_text.number(played.mean)}")
  else:
    error = np.std(played.scores, ddof=1) / np.sqrt(count)
    text = f"mean {score_text.with_error(played.mean, error)}"
    print(*output.wrapped(text, "score: ", "       "), sep="\n")
    print(f"       median {score_text.number(np.median(played.scores))}")
    ends = min(played.scores), max(played.scores)
    print(f"       from {' to '.join(map(score_text.number, ends))}")
  if played.vectors is not None:
    parts = np.mean(played.vectors, axis=0)
    print(f"vector: mean {', '.join(map(score_text.number, parts))}")
  mean = "" if count == 1 else "mean "
  print(f"steps: {mean}{np.mean(played.lengths):.0f}")
  if played.cut:
    print(f"cut off: {played.cut} games that had not ended")


def _compare(found: float, recorded: Optional[float]) -> None:
  if recorded is None:
    text = "the run did not evaluate this step; there is nothing to compare"
    print(*output.wrapped(text), sep="\n")
    return
  verdict = "the same" if found == recorded else "NOT the same"
  score = score_text.number(recorded)
  text = f"the run itself found {score} at this step: {verdict}"
  print(*output.wrapped(text), sep="\n")
