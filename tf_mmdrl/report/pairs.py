"""Agents compared two by two: how probably one beats the other."""

import itertools
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.report import intervals, score_statistics, tables
from tf_mmdrl.report.results import Agent
from tf_mmdrl.report.tables import Table

_ALL_PAIRS = 5  # agents; of more, only pairs with the baseline are compared


class Pair(NamedTuple):
  """Two agents and how they compare.

  Attributes:
    first: the one that was better.
    second: the other.
    games: those that both have played.
    probability: that a run of the first beats one of the second in a game.
  """

  first: Agent
  second: Agent
  games: Sequence[str]
  probability: intervals.Estimate

  def verdict(self) -> str:
    """What the interval supports, in words."""
    low, high = self.probability.low, self.probability.high
    if low is None or high is None:
      return "no interval: one seed"
    if low > 0.5:
      return f"{self.first.name} is better"
    return "no difference shown"


def compared(agents: Sequence[Agent], baseline: Optional[Agent]) -> List[Pair]:
  """Pairs of agents of one's own runs, the better one first.

  Args:
    agents: the agents.
    baseline: the one to compare with if there are many.

  Returns:
    Every pair that has a game in common; of many agents, those with the
    baseline.
  """
  every = itertools.combinations(agents, 2)
  found = []
  for first, second in every:
    if len(agents) > _ALL_PAIRS and baseline not in (first, second):
      continue
    games = [game for game in first.measured if game in second.measured]
    if games:
      found.append(_pair(first, second, games))
  return found


def table(found: Sequence[Pair]) -> Table:
  """A row for each pair."""
  rows = [
    [
      pair.first.name,
      pair.second.name,
      tables.score(pair.probability.percent()),
      pair.verdict(),
      len(pair.games),
      f"{_count(pair.first, pair.games)} and {_count(pair.second, pair.games)}",
    ]
    for pair in found
  ]
  headings = {
    "agent": "Agent",
    "other": "Over",
    "probability": "Probability %",
    "verdict": "What the interval supports",
    "games": "Games",
    "seeds": "Seeds of each",
  }
  return Table(
    "probability_of_improvement",
    "How probably a run of one agent beats a run of another",
    list(headings),
    list(headings.values()),
    rows,
    [
      "P(X > Y) + P(X = Y) / 2 in each game, over all pairs of their seeds,"
      " then the mean over the games that both have played. Square brackets are"
      " 95 % intervals (stratified bootstrap over the seeds of both). An agent"
      " is called better only if the whole interval is above 50 %.",
    ],
  )


def _pair(first: Agent, second: Agent, games: Sequence[str]) -> Pair:
  x, y = _matrices(first, second, games)
  if score_statistics.probability_of_improvement(x, y) < 0.5:
    first, second, x, y = second, first, y, x
  found = intervals.estimate_of_two(
    score_statistics.probability_of_improvement, x, y
  )
  return Pair(first, second, games, found)


def _matrices(
  first: Agent, second: Agent, games: Sequence[str]
) -> Tuple[np.ndarray, np.ndarray]:
  """[S, G] and [T, G] raw scores, with the seeds that every game has."""
  return tuple(
    np.stack(
      [agent.measured[game].values[: _count(agent, games)] for game in games],
      axis=-1,
    )
    for agent in (first, second)
  )


def _count(agent: Agent, games: Sequence[str]) -> int:
  return min(len(agent.measured[game].values) for game in games)
