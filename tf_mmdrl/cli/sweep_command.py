"""`mmdrl sweep`: games x agents x seeds."""

import argparse
import contextlib
import functools
import os
import pathlib
from typing import Any, Iterator, List, Tuple

from tf_mmdrl.cli import main, output, parsing, quiet, train_command
from tf_mmdrl.cluster import search_lock
from tf_mmdrl.core import algorithms, errors
from tf_mmdrl.train import sweeps

_MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")


EXAMPLE = "mmdrl sweep --envs CartPole-v1 --agents dqn,mmdqn --seeds 0,1,2"
PAGE = "docs/algorithms/README.md"


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
    help="change a setting of every run, or of the runs of AGENT",
  )
  add_places(parser, "runs")
  parser.add_argument(
    "--run-dir", default="runs/sweep", help="directory of all runs of the sweep"
  )
  add_shares(parsing.more(parser))


def run(args: argparse.Namespace) -> int:
  """Runs what is left of the sweep, and prints the table."""
  check_places(args)
  directory = pathlib.Path(args.run_dir)
  jobs = planned(args)

  with search_lock.alone(directory), places(args) as (at_once, start):
    outcome = sweeps.run(
      jobs,
      directory,
      at_once=at_once,
      show=output.say,
      start=lambda job: start(job.arguments, job.directory, job.log),
    )
  rows = sweeps.finished(directory)
  if rows:
    print(*output.table(sweeps.table(rows)), sep="\n")
  if outcome.failed:
    raise errors.UserError(
      f"{outcome.failed} of {len(jobs)} runs failed; the same command tries"
      " them again"
    )
  if outcome.stopped:
    text = "not all runs are finished; run the same command to go on"
    print(*output.wrapped(text), sep="\n")
    return main.EXIT_STOPPED
  return main.EXIT_OK


def planned(args: argparse.Namespace) -> List[Any]:
  """The runs of a sweep; raises what one of them would raise at its start."""
  names = _split("--agents", args.agents)
  for name in names:
    algorithms.check_name(name)
  own = {name: _settings(args.set, name, names) for name in names}
  seeds = seeds_of(args.seeds)
  shared = ["--preset", args.preset] if args.preset else []
  if args.steps:
    shared += ["--steps", args.steps]
  jobs = sweeps.plan(
    pathlib.Path(args.run_dir),
    _split("--envs", args.envs),
    seeds,
    {name: [*shared, *_flags(own[name])] for name in names},
  )
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  # The runs of the other seeds differ in nothing else.
  first = jobs[: len(jobs) // len(seeds)]
  asked = [parser.parse_args(job.arguments) for job in first]
  for each in asked:
    train_command.check(each)
  require_cluster(args)
  with quiet.loading():
    from tf_mmdrl.train import factories

  for each in asked:
    _, config = train_command.wanted(each)
    factories.check(config)
  return jobs


def add_places(parser: argparse.ArgumentParser, what: str) -> None:
  """Adds the options that say where runs are made."""
  parser.add_argument(
    "--jobs",
    type=int,
    metavar="N",
    help=f"{what} at the same time; 1, or what --cluster holds",
  )


def add_shares(parser: argparse._ActionsContainer) -> None:
  """Adds the options of runs on other machines."""
  parser.add_argument(
    "--cluster",
    metavar="ADDRESS",
    help="HOST:PORT of a cluster whose machines train; all of them must see"
    " --run-dir",
  )
  parser.add_argument(
    "--collect",
    action="store_true",
    help="with --cluster: only this machine sees --run-dir; runs are fetched",
  )
  parser.add_argument(
    "--cpus", type=int, default=1, help="with --cluster: CPUs of each run"
  )
  parser.add_argument(
    "--gpus", type=float, default=0, help="with --cluster: GPUs of each run"
  )


def check_places(args: argparse.Namespace) -> None:
  """Raises if there is no room for a run."""
  for flag in ("jobs", "cpus"):
    value = getattr(args, flag)
    if value is not None and value < 1:
      raise errors.UserError(f"--{flag} must be at least 1, got {value}")
  if not args.gpus >= 0:
    raise errors.UserError(f"--gpus must be at least 0, got {args.gpus:g}")
  if args.collect and args.cluster is None:
    raise errors.UserError(
      "--collect fetches runs from other machines; pass --cluster ADDRESS, too"
    )


def require_cluster(args: argparse.Namespace) -> None:
  """Raises if --cluster cannot be asked for."""
  if args.cluster is not None:
    from tf_mmdrl.cluster import connection

    connection.require(args.cluster)


@contextlib.contextmanager
def places(args: argparse.Namespace) -> Iterator[Tuple[int, Any]]:
  """How many runs at once, and what starts one: (arguments, directory, log)."""
  if args.cluster is None:
    from tf_mmdrl.train import run_process

    at_once = args.jobs or 1
    threads = max(1, (os.cpu_count() or 1) // at_once)
    yield at_once, functools.partial(run_process.RunProcess, threads=threads)
    return
  from tf_mmdrl.cluster import connection

  with connection.cluster(args.cluster):
    from tf_mmdrl.cluster import run_host

    run_host.require_room(args.cpus, args.gpus)
    at_once = args.jobs or max(1, run_host.cpus_of_cluster() // args.cpus)
    yield (
      at_once,
      functools.partial(
        run_host.ClusterProcess,
        cpus=args.cpus,
        gpus=args.gpus,
        collect=args.collect,
      ),
    )


def seeds_of(text: str) -> List[int]:
  """The whole numbers of `--seeds`."""
  seeds = _split("--seeds", text)
  if not all(seed.isdigit() for seed in seeds):
    raise errors.UserError(
      f"--seeds wants whole numbers joined by commas, got {text!r}"
    )
  return list(map(int, seeds))


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
