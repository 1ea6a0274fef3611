"""`mmdrl record`: plays policies and logs their episodes as a data set."""

import argparse
import pathlib

import numpy as np

from tf_mmdrl.cli import game_flags, output, quiet, run_argument
from tf_mmdrl.core import errors, optional, progress, score_text
from tf_mmdrl.environments import names
from tf_mmdrl.offline import policy_places

EXAMPLE = "mmdrl record runs/... -o data --epsilon 0.1 --episodes 500"
PAGE = "docs/offline.md"
_EPISODES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl record`."""
  parser.add_argument(
    "policies",
    metavar="RUN",
    nargs="+",
    help=(
      "a run or exports, RUN@STEP for one of them, zoo:NAME,"
      " package.module:FUNCTION, or random; several take turns"
    ),
  )
  parser.add_argument(
    "-o",
    "--output",
    metavar="DATASET",
    required=True,
    help="folder to write in Minari's format; it must not exist",
  )
  run_argument.add_import(parser)
  parser.add_argument(
    "--episodes",
    type=int,
    help=f"episodes to play; {_EPISODES} if left out",
  )
  parser.add_argument(
    "--steps",
    type=int,
    help="steps to play, instead of --episodes",
  )
  parser.add_argument(
    "--epsilon",
    type=float,
    help="share of random actions; the run's if left out",
  )
  parser.add_argument(
    "--policy",
    dest="score",
    metavar="SCORE",
    help="what actions maximise, such as cvar:0.25; the run's if left out",
  )
  parser.add_argument(
    "--env", help="environment to play; that of the first run if left out"
  )
  parser.add_argument(
    "--seed", help="seed of the games; that of the first run if left out"
  )


def run(args: argparse.Namespace) -> int:
  """Plays, writes the data set, and says what is in it."""
  given = [n for n in (args.episodes, args.steps) if n is not None]
  if len(given) > 1 or min(given, default=1) < 1:
    raise errors.UserError(
      "pass --episodes or --steps, at least 1, got"
      f" {' and '.join(map(str, given))}"
    )
  if pathlib.Path(args.output).exists():  # before the long way to there
    raise errors.UserError(
      f"{args.output!r} exists already; pass another -o, or remove it"
    )
  _check(args)
  with quiet.loading():
    from tf_mmdrl.offline import recording, target_policies
    from tf_mmdrl.train import playing

  policies = [
    None
    if text == policy_places.RANDOM
    else target_policies.open_policy(
      text, epsilon=args.epsilon, score=args.score, imports=args.imports
    )
    for text in args.policies
  ]
  known = [policy for policy in policies if policy and policy.config]
  config = game_flags.wanted(
    known[0] if known else target_policies.uniform(1), args
  )
  episodes = 0 if args.steps else args.episodes or _EPISODES
  if episodes:
    config = playing.for_episodes(config, str(episodes))
  with progress.Progress(1.0, "record") as shown:
    made = recording.record(
      policies,
      config,
      pathlib.Path(args.output),
      episodes=episodes,
      steps=args.steps or 0,
      about={"behaviour": args.policies, "epsilon": args.epsilon},
      progress=shown.update,
    )
  error = np.std(made.scores) / np.sqrt(len(made.scores))
  text = (
    f"wrote {made.path}: {len(made.scores):,} episodes of {made.num_steps:,}"
    f" steps; {made.num_cut:,} were cut off"
  )
  print(*output.wrapped(text, rest="  "), sep="\n")
  mean = score_text.number(float(np.mean(made.scores)))
  print(f"score: mean {mean} +- {score_text.number(error)}")
  return 0


def _check(args: argparse.Namespace) -> None:
  """Raises what needs no TensorFlow to be known."""
  optional.require_there("h5py", use="data sets", extra="offline")
  game_flags.check_settings(args)
  played = [args.env]
  for text in args.policies:
    if text != policy_places.RANDOM:
      place = policy_places.find(text)
      if place.directory is not None:
        made_for = game_flags.environment(place.directory, place.version)
        played.append(made_for)
  first = next((name for name in played if name), None)
  if first is not None:
    names.require(first)
