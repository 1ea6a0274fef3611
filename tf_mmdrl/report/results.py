"""What was measured: runs, and the agents that they are runs of."""

import dataclasses
from typing import (
  Any,
  Dict,
  Iterable,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.report import joint_calibration, published, score_statistics

# Differences that do not make another agent: where it plays, for how long, how
# it is evaluated, and on what machine.
_NOT_THE_AGENT = ("environment.name", "schedule.steps")
_NOT_THE_AGENTS = ("evaluation.", "system.")


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """The evaluations of one run.

  Attributes:
    agent: what learnt.
    game: what it played; a game of the paper's table in the table's spelling.
    seed: the seed of the run.
    steps: [E] agent steps before each evaluation.
    scores: [E] mean raw score of each evaluation.
    episodes: [E] whole games that each evaluation counts; None if not known.
    settings: `group.field` -> value; empty if not known.
    origin: where it was read.
    vectors: [E, D] mean raw scores of each evaluation, if rewards were vectors;
      `scores` are then what these are worth by the run's utility.
    joint: what `mmdrl calibrate` found of joint returns, if it was asked.
  """

  agent: str
  game: str
  seed: int
  steps: np.ndarray
  scores: np.ndarray
  episodes: Optional[np.ndarray]
  settings: Mapping[str, Any]
  origin: str
  vectors: Optional[np.ndarray] = None
  joint: Sequence[joint_calibration.Row] = ()


class Measured(NamedTuple):
  """What an agent reached in a game.

  Attributes:
    values: [S] a raw score for each seed.
    seeds: which ones, in words.
    episodes: games behind the values; None if not known.
  """

  values: np.ndarray
  seeds: str
  episodes: Optional[int]


class Agent(NamedTuple):
  """An agent and its scores.

  Attributes:
    name: as it is shown.
    measured: what was measured, by game.
    published: whether the scores are the paper's.
  """

  name: str
  measured: Mapping[str, Measured]
  published: bool = False


def shown_game(name: str) -> str:
  """A game as reports call it: the paper's spelling where it has one."""
  return published.game(name) or name


def has_reference(game: str) -> bool:
  """Whether a game's random and human scores are known."""
  return published.reference(game) is not None


def published_agents(suffix: str = "") -> List[Agent]:
  """The agents of Appendix C, their names with a suffix."""
  table = published.raw_scores()
  return [
    Agent(
      agent + suffix,
      {
        game: Measured(
          np.array([row[agent]]),
          published.SEEDS.get(agent, published.NOT_GIVEN),
          None,
        )
        for game, row in table.items()
      },
      published=True,
    )
    for agent in published.AGENTS
  ]


def varied(runs: Sequence[Run]) -> Dict[str, List[str]]:
  """The settings in which runs of one agent on one game differ, by agent."""
  found: Dict[str, List[str]] = {}
  for key, group in grouped(runs, lambda run: (run.agent, run.game)).items():
    names = sorted({name for run in group for name in run.settings})
    for name in names:
      if name in _NOT_THE_AGENT or name.startswith(_NOT_THE_AGENTS):
        continue
      # What a run has not recorded cannot be said to differ.
      values = {repr(r.settings[name]) for r in group if name in r.settings}
      if len(values) > 1 and name not in found.setdefault(key[0], []):
        found[key[0]].append(name)
  return {agent: names for agent, names in found.items() if names}


def name_variants(runs: Sequence[Run]) -> List[Run]:
  """Gives each variant of an agent its own name.

  Args:
    runs: named by their algorithm.

  Returns:
    The same runs. Where runs of an algorithm differ in settings, these stand in
    the name: `"mmdqn, num_particles=50"`.
  """
  differing = varied(runs)
  named = []
  for run in runs:
    parts = [
      f"{name.rpartition('.')[2]}={run.settings.get(name, 'not recorded')}"
      for name in differing.get(run.agent, [])
    ]
    label = ", ".join([run.agent, *parts])
    named.append(dataclasses.replace(run, agent=label))
  _require_distinct(named)
  return named


def agents(runs: Sequence[Run], *, last: int = 0) -> List[Agent]:
  """The agents behind runs, in the order in which they appear.

  Args:
    runs: named apart.
    last: a seed's score is the mean of this many last evaluations; if 0, its
      best evaluation, as in the paper.

  Returns:
    The agents with their scores.
  """
  made = []
  for name, of_agent in grouped(runs, lambda run: run.agent).items():
    by_game = grouped(of_agent, lambda run: run.game)
    measured = {game: _measured(group, last) for game, group in by_game.items()}
    made.append(Agent(name, measured))
  return made


def aligned(runs: Sequence[Run]) -> Tuple[np.ndarray, np.ndarray]:
  """Curves of several runs at the same steps.

  Args:
    runs: at least one.

  Returns:
    [F] the steps of all runs that every run covers, and [S, F] scores there,
    by straight lines between evaluations where a run has none at a step.
  """
  first = max(run.steps[0] for run in runs)
  last = min(run.steps[-1] for run in runs)
  steps = np.unique(np.concatenate([run.steps for run in runs]))
  steps = steps[(steps >= first) & (steps <= last)]
  curves = [np.interp(steps, run.steps, run.scores) for run in runs]
  return steps, np.array(curves)


def grouped(items: Iterable[Any], key: Any) -> Dict[Any, List[Any]]:
  """Items by `key(item)`, in the order in which keys appear."""
  groups: Dict[Any, List[Any]] = {}
  for item in items:
    groups.setdefault(key(item), []).append(item)
  return groups


def _measured(runs: Sequence[Run], last: int) -> Measured:
  """The scores of one agent in one game."""
  values, episodes = [], 0
  for run in runs:
    chosen = slice(-last, None)
    if not last:
      best = score_statistics.best_evaluation(run.scores)
      chosen = slice(best, best + 1)
    values.append(np.mean(run.scores[chosen]))
    if run.episodes is not None:
      episodes += int(np.sum(run.episodes[chosen]))
  known = all(run.episodes is not None for run in runs)
  seeds = ", ".join(str(run.seed) for run in runs)
  return Measured(np.array(values), seeds, episodes if known else None)


def _require_distinct(runs: Sequence[Run]) -> None:
  """Two runs that are one experiment would pass for two seeds."""
  key = lambda run: (run.agent, run.game, run.seed)  # noqa: E731
  for same in grouped(runs, key).values():
    if len(same) > 1:
      raise errors.UserError(
        f"{same[0].origin!r} and {same[1].origin!r} are the same experiment"
        f" ({same[0].agent}, {same[0].game}, seed {same[0].seed}); pass one of"
        " them"
      )
