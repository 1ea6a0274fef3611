"""`mmdrl sweep`: games x agents x seeds."""

import argparse
import pathlib
from typing import List

from tf_mmdrl.cli import main, quiet, train_command
from tf_mmdrl.core import algorithms, errors

_MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl sweep`."""
  parser.add_argument(
    "--envs",
    default=",".join(f"MinAtar/{game}" for game in _MINATAR),
    help="games to train on, joined by commas",
  )
  parser.add_argument(
    "--agents",
    default="dqn,c51,qrdqn,iqn,mmdqn",
    help="algorithms to train, joined by commas",
  )
  parser.add_argument(
    "--seeds", default="0,1", help="seeds of each game and algorithm"
  )
  parser.add_argument(
    "--preset",
    help="settings to begin with, which mmdrl presets lists; chosen by the"
    " environment if left out",
  )
  parser.add_argument("--steps", help="length of each run in agent steps")
  parser.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="[AGENT:]GROUP.FIELD=VALUE",
    help="changes a setting of every run, or of the runs of AGENT",
  )
  parser.add_argument(
    "--jobs", type=int, default=1, help="runs at the same time"
  )
  parser.add_argument(
    "--run-dir", default="runs/sweep", help="directory of all runs of the sweep"
  )


def run(args: argparse.Namespace) -> int:
  """Runs what is left of the sweep, and prints the table."""
  names = _split("--agents", args.agents)
  for name in names:
    algorithms.check_name(name)
  own = {name: _settings(args.set, name, names) for name in names}
  if args.jobs < 1:
    raise errors.UserError(f"--jobs must be at least 1, got {args.jobs}")
  seeds = _split("--seeds", args.seeds)
  if not all(seed.isdigit() for seed in seeds):
    raise errors.UserError(
      f"--seeds wants whole numbers joined by commas, got {args.seeds!r}"
    )
  shared = ["--preset", args.preset] if args.preset else []
  if args.steps:
    shared += ["--steps", args.steps]
  with quiet.loading():
    from tf_mmdrl.train import sweeps

  directory = pathlib.Path(args.run_dir)
  jobs = sweeps.plan(
    directory,
    _split("--envs", args.envs),
    list(map(int, seeds)),
    {name: [*shared, *_flags(own[name])] for name in names},
  )
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  for job in jobs:
    _, config = train_command.wanted(parser.parse_args(job.arguments))
    sweeps.check(config)
  outcome = sweeps.run(
    jobs,
    directory,
    at_once=args.jobs,
    show=lambda line: print(line, flush=True),
  )
  for line in sweeps.table(sweeps.finished(directory)):
    print(line)
  if outcome.failed:
    raise errors.UserError(
      f"{outcome.failed} of {len(jobs)} runs failed; the same command tries"
      " them again"
    )
  if outcome.stopped:
    print("not all runs are finished; run the same command to go on")
    return main.EXIT_STOPPED
  return main.EXIT_OK


def _settings(texts: List[str], agent: str, agents: List[str]) -> List[str]:
  """Those settings that are an agent's; a name before a colon says whose."""
  own = []
  for text in texts:
    field, equals, value = text.partition("=")
    whose, colon, field = field.rpartition(":")
    if colon and whose not in agents:
      raise errors.unknown_name("agent of this sweep", whose, agents)
    if whose in ("", agent):
      own.append(f"{field}{equals}{value}")
  return own


def _flags(assignments: List[str]) -> List[str]:
  return [part for text in assignments for part in ("--set", text)]


def _split(flag: str, text: str) -> List[str]:
  parts = [part.strip() for part in text.split(",") if part.strip()]
  if not parts:
    raise errors.UserError(f"{flag} wants names joined by commas, got {text!r}")
  return parts
