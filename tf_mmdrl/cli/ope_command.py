"""`mmdrl ope`: what policies would return, estimated from logged episodes."""

import argparse
import hashlib
import pathlib
import re
from typing import TYPE_CHECKING, Any, List, Optional

from tf_mmdrl.cli import game_flags, output, parsing, quiet, run_argument
from tf_mmdrl.core import algorithms, errors, optional, score_words
from tf_mmdrl.environments import names
from tf_mmdrl.offline import laws, opening, policy_places
from tf_mmdrl.train import config as configs

if TYPE_CHECKING:
  from tf_mmdrl.offline import ope
  from tf_mmdrl.offline.dataset import DataSet

EXAMPLE = "mmdrl ope --policy runs/... --data data --below 5"
PAGE = "docs/offline.md"
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl ope`."""
  parser.add_argument(
    "--policy",
    "--policies",
    dest="policies",
    metavar="POLICY",
    nargs="+",
    required=True,
    help="a run or exports, RUN@STEP, zoo:NAME, package.module:FUNCTION, or"
    " random",
  )
  parser.add_argument(
    "--data",
    required=True,
    metavar="DATASET",
    help="a local Minari data set, or a .npz or .csv file",
  )
  parser.add_argument(
    "-o",
    "--output",
    metavar="DIR",
    help="directory of the report; ope/DATASET if left out",
  )
  parser.add_argument(
    "--agent",
    help="algorithm that is fitted to the data",
  )
  parser.add_argument(
    "--gamma",
    type=float,
    help="discount; that of the policy's run, or 0.99, if left out",
  )
  parser.add_argument(
    "--by", default="mean", help="statistic to rank policies by"
  )
  parser.add_argument(
    "--below",
    type=float,
    nargs="+",
    default=[],
    metavar="C",
    help="returns whose P(G < C), the chance of less, is reported",
  )
  parser.add_argument(
    "--truth",
    metavar="ENV",
    help="environment to play the policies in, for comparison",
  )
  parser.add_argument(
    "--memory", default="500M", help="most bytes of transitions held at a time"
  )
  parser.add_argument(
    "--seed", type=int, default=0, help="seed of everything random"
  )
  more = parsing.more(parser)
  more.add_argument(
    "--estimators",
    nargs="+",
    default=[],
    metavar="NAME",
    help="which to use: fitted, neighbours, doubly_robust, ordinary,"
    " per_decision, self_normalised, clipped; all that the data allows if left"
    " out",
  )
  more.add_argument(
    "--actions",
    type=int,
    default=0,
    metavar="A",
    help="how many actions there are, for a .csv or .npz that does not say it",
  )
  more.add_argument(
    "--epsilon", type=float, help="share of the policies' random actions"
  )
  more.add_argument("--score", help="what the policies' actions maximise")
  more.add_argument(
    "--truth-episodes",
    type=int,
    default=1000,
    metavar="N",
    help="episodes to play in the environment of --truth",
  )
  more.add_argument(
    "--clip",
    type=float,
    default=10.0,
    help="largest importance weight of the clipped estimator",
  )
  more.add_argument(
    "--refits",
    type=int,
    default=0,
    metavar="N",
    help="how often the fit is repeated on bootstrapped episodes, which gives"
    " its estimates intervals",
  )
  more.add_argument(
    "--updates", type=int, default=200_000, help="most updates of a fit"
  )
  more.add_argument(
    "--period",
    type=int,
    default=500,
    help="updates between two looks at the Bellman residual",
  )
  more.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="NAME=VALUE",
    help="change a setting of the agent that is fitted",
  )
  run_argument.add_import(parser)


def run(args: argparse.Namespace) -> int:
  """Evaluates, writes the report, and prints the tables."""
  budget = _bytes(args.memory)
  _check(args)
  optional.require_there("matplotlib", use="reports", extra="report")
  episodes = opening.open_dataset(args.data)
  directory = output.directory(args.output or _default(args.data))
  with quiet.loading():
    from tf_mmdrl.offline import ope_report, overview, recording
    from tf_mmdrl.report import tables
    from tf_mmdrl.train import trainer

  policies = _policies(args, episodes)
  if args.truth:
    recording.require_same(args.truth, episodes.description)
  options = _options(args, policies, episodes, budget)
  trainer.configure_process(options.config)
  data = overview.open_data(episodes, options.config.agent.gamma)
  found = []
  for policy in policies:
    found.extend(_evaluated(policy, data, options, args, directory, budget))
  made, found = ope_report.make(found, data, options, args.data, args.by)
  files = ope_report.write(made, found, directory)
  for section in made.sections:
    for table in section.tables:
      print(*output.wrapped(table.title), sep="\n")
      print(*output.table(tables.to_cells(table)), sep="\n")
      for note in table.notes:
        print(*output.wrapped(note), sep="\n")
      print()
  for each in found:
    for warning in () if each.part else each.warnings:
      text = f"{each.name}: {warning}"
      print(*output.wrapped(text, "- ", "  "), sep="\n")
  print(f"wrote {directory / 'report.html'} and {len(files) - 1} more files")
  return 0


def _check(args: argparse.Namespace) -> None:
  """Raises what needs no TensorFlow to be known."""
  changes = list(args.set)
  if args.agent is not None:
    algorithms.check_name(args.agent)
    changes.insert(0, f"agent.name={args.agent}")
  configs.check(configs.Config(), changes)
  laws.check_statistic(args.by)
  if args.score is not None:
    score_words.read_steady(args.score)
  for text in args.policies:
    if text != policy_places.RANDOM:
      place = policy_places.find(text)
      if place.directory is not None:
        game_flags.environment(place.directory, place.version)
  if args.truth is not None:
    names.require(args.truth)


def _evaluated(policy, data, options, args, directory, budget) -> List[Any]:
  from tf_mmdrl.offline import evaluated, ope

  name = hashlib.sha256(policy.name.encode()).hexdigest()[:12]
  found = ope.evaluate(
    policy, data, options, directory / "fits" / name, {"memory": budget}
  )
  if args.truth:
    played = _played(policy, args, options.config.agent.gamma)
    found = evaluated.with_truth(found, played)
  return found


def _policies(args: argparse.Namespace, episodes: "DataSet") -> List[Any]:
  from tf_mmdrl.offline import target_policies

  def opened():
    return [
      target_policies.open_policy(
        text,
        episodes.description.num_actions,
        epsilon=args.epsilon,
        score=args.score,
        imports=args.imports,
      )
      for text in args.policies
    ]

  episodes.allow(args.actions)
  before, policies = episodes.description.num_actions, opened()
  for policy in policies:
    if policy.exported is not None:
      episodes.allow(policy.exported.num_actions)
  if episodes.description.num_actions > before:
    policies = opened()  # random play and functions have as many
  for policy in policies:
    policy.require_fit(episodes.description, f"the data set {args.data!r}")
  return policies


def _options(args, policies, episodes: "DataSet", budget: int) -> "ope.Options":
  from tf_mmdrl.offline import fitting, ope

  is_picture = len(episodes.description.observation_shape) == 3
  is_joint = episodes.description.reward_size > 0
  agent = args.agent or ("joint_mmdqn" if is_joint else "mmdqn")
  base = ope.base_config(agent, _gamma(args, policies), is_picture, args.seed)
  return ope.Options(
    configs.change(base, args.set),
    fitting.Settings(period=args.period, most=args.updates),
    args.estimators,
    args.below,
    budget,
    args.clip,
    refits=args.refits,
  )


def _played(policy, args: argparse.Namespace, gamma: float):
  from tf_mmdrl.offline import recording

  return recording.play(
    policy,
    args.truth,
    episodes=args.truth_episodes,
    gamma=gamma,
    seed=args.seed,
  )


def _gamma(args: argparse.Namespace, policies: List[Any]) -> float:
  if args.gamma is not None:
    if not 0 <= args.gamma <= 1:
      raise errors.UserError(f"--gamma must lie in [0, 1], got {args.gamma}")
    return args.gamma
  known: List[Optional[Any]] = [each.config for each in policies]
  found = {config.agent.gamma for config in known if config is not None}
  if len(found) > 1:
    raise errors.UserError(
      f"the policies' runs have the discounts {sorted(found)}; pass --gamma"
    )
  return found.pop() if found else 0.99


def _bytes(text: str) -> int:
  found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)B?\s*", text.upper())
  if not found or float(found[1]) <= 0:
    raise errors.UserError(
      f"--memory wants bytes such as 500M or 2G, got {text!r}"
    )
  return int(float(found[1]) * _UNITS[found[2]])


def _default(data: str) -> str:
  return f"ope/{pathlib.Path(data).stem or 'data'}"
