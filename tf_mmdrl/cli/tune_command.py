"""`mmdrl tune`: searches settings, and prints the best."""

import argparse
import functools
import pathlib
import shlex
from typing import Any, List

from tf_mmdrl.cli import (
  main,
  output,
  parsing,
  quiet,
  sweep_command,
  train_command,
)
from tf_mmdrl.cluster import search, search_space
from tf_mmdrl.core import errors, optional, score_text

EXAMPLE = "mmdrl tune --search optimizer.learning_rate=1e-5..1e-2:log"
PAGE = "docs/cluster.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl tune`."""
  parser.add_argument(
    "--search",
    action="append",
    default=[],
    metavar="SETTING",
    help="a setting to search: GROUP.FIELD=LOW..HIGH, with :log if its order"
    " of magnitude counts, or GROUP.FIELD=A,B,C; may be repeated",
  )
  parser.add_argument(
    "--env", help="the game, or the id of a Gymnasium environment"
  )
  parser.add_argument("--agent", help="the algorithm; mmdrl agents lists them")
  parser.add_argument("--preset", metavar="NAME", help="settings to begin with")
  parser.add_argument(
    "--steps", metavar="N", help="length of each run in agent steps"
  )
  parser.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="SETTING",
    help="GROUP.FIELD=VALUE, a change of a setting in every run",
  )
  parser.add_argument(
    "--trials",
    type=int,
    default=16,
    metavar="N",
    help="how many choices of settings to try",
  )
  parser.add_argument(
    "--seeds", default="0,1", help="seeds that each choice is trained with"
  )
  sweep_command.add_places(parser, "trials")
  parser.add_argument(
    "--run-dir",
    default="runs/tune",
    metavar="DIR",
    help="directory of the whole search",
  )
  more = parsing.more(parser)
  more.add_argument(
    "--search-seed", type=int, default=0, help="seed that choices are made with"
  )
  sweep_command.add_shares(more)


def run(args: argparse.Namespace) -> int:
  """Runs what is left of the search; prints the best settings."""
  seeds = sweep_command.seeds_of(args.seeds)
  sweep_command.check_places(args)
  if args.trials < 1:
    raise errors.UserError(f"--trials must be at least 1, got {args.trials}")
  optional.require_there("optuna", use="searches", extra="tune")
  shared = _shared(args)
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  asked = parser.parse_args(shared)
  train_command.check(asked)
  search_space.check(args.search)
  sweep_command.require_cluster(args)
  with quiet.loading():
    from tf_mmdrl.train import factories

  _, config = train_command.wanted(asked)
  factories.check(config)
  plan = search.Plan(
    pathlib.Path(args.run_dir),
    shared,
    search_space.parse(args.search, config),
    seeds,
    args.trials,
    config.schedule.steps,
    args.search_seed,
  )
  with sweep_command.places(args) as (at_once, start):
    if args.cluster is None:
      start = functools.partial(start, bound=True)
    finished = search.run(
      plan,
      at_once=at_once,
      start=start,
      show=output.say,
    )
  _show(plan, shared)
  if not finished:
    text = "not all trials are finished; run the same command to go on"
    print(*output.wrapped(text), sep="\n")
    return main.EXIT_STOPPED
  return main.EXIT_OK


def _shared(args: argparse.Namespace) -> List[str]:
  """The arguments of `mmdrl train` in every run."""
  shared: List[str] = []
  for flag in ("env", "agent", "preset", "steps"):
    if getattr(args, flag) is not None:
      shared += [f"--{flag}", getattr(args, flag)]
  return [*shared, *(p for text in args.set for p in ("--set", text))]


def _show(plan: Any, shared: List[str]) -> None:
  from tf_mmdrl.cluster import search_figure

  found = search.trials(plan)
  ends = [trial.state for trial in found]
  text = (
    f"{len(found)} {'trial' if len(found) == 1 else 'trials'}:"
    f" {ends.count('complete')} complete, {ends.count('pruned')} stopped early,"
    f" {ends.count('failed')} failed, {ends.count('running')} under way;"
    f" {search.saved(plan, found):.0%} of the steps saved"
  )
  print(*output.wrapped(text, rest="  "), sep="\n")
  best = search.best(found)
  if best is None:
    return
  shares = search_figure.importances(search.open_study(plan))
  for name, share in shares.items():
    print(f"importance of {name}: {share:.0%}")
  if optional.is_there("matplotlib"):
    picture = plan.directory / "search.png"
    search_figure.draw(found, shares, picture)
    print(f"picture: {picture}")
  chosen = [part for text in best.settings for part in ("--set", text)]
  print(f"best, trial {best.number}, with {score_text.number(best.value)}:")
  print(f"  mmdrl train {shlex.join([*shared, *chosen])}")
