"""Scales that scores of different games are brought to, to be put together.

Atari games have human scores, so 1 is human play as in the paper. For other
games 1 is one of the agents that are compared. 0 is random play on both.
"""

import functools
from typing import List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.report import published
from tf_mmdrl.report.published import Reference
from tf_mmdrl.report.results import Agent


class Scale(NamedTuple):
  """A scale for the scores of some games.

  Attributes:
    name: what scores on it are called.
    one: who has 1 in every game.
    references: what is 0 and what is 1 in each game.
  """

  name: str
  one: str
  references: Mapping[str, Reference]

  @property
  def games(self) -> List[str]:
    """The games that have a place on it."""
    return list(self.references)

  def matrix(self, agent: Agent) -> np.ndarray:
    """[S, G] scores of an agent, with the seeds that every game has.

    Args:
      agent: one that has played every game of the scale.
    """
    count = min(len(agent.measured[game].values) for game in self.games)
    columns = [
      reference.normalized(agent.measured[game].values[:count])
      for game, reference in self.references.items()
    ]
    return np.stack(columns, axis=-1)


def human(games: Sequence[str]) -> Scale:
  """The paper's scale, for games of its table."""
  references = {game: published.scale(game) for game in games}
  return Scale("human-normalised", "human play", references)


def relative(games: Sequence[str], baseline: Agent) -> Scale:
  """A scale on which an agent has 1, by the mean over its seeds.

  Args:
    games: those that the agent has played.
    baseline: the agent.

  Returns:
    The scale. A game is left out if its random score is not known, or if the
    agent plays it no better than at random.
  """
  references = {}
  for game in games:
    random = random_score(game)
    one = float(np.mean(baseline.measured[game].values))
    if random is not None and one > random:
      references[game] = Reference(random, one)
  return Scale(f"{baseline.name}-normalised", baseline.name, references)


def random_score(game: str) -> Optional[float]:
  """What random play scores, of games that the paper's table does not have."""
  return _random_scores().get(game)


@functools.cache
def _random_scores() -> Mapping[str, float]:
  rows = published.rows("random_scores.csv")
  return {row["game"]: float(row["random"]) for row in rows}
