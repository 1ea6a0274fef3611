"""The paper's scores: 55 Atari games (Appendix C) and its Table 1.

The numbers are the paper's own, also where they look wrong; `errata` tells
where.
"""

import csv
import functools
from importlib import resources
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from tf_mmdrl.core import game_names

# The columns of Appendix C that hold an agent's scores.
AGENTS = ("DQN", "Prior. Duel.", "C51", "QR-DQN-1", "MMDQN")
# What the captions say of the seeds; nothing is said of episodes.
SEEDS = {"MMDQN": "mean of 3"}
NOT_GIVEN = "not given"
_PREFIXES = ("", "ale", "atari")


class Reference(NamedTuple):
  """The two scores that a game's scale is made of.

  Attributes:
    random: 0 on the scale, random play.
    one: 1 on the scale; in the paper's table human play.
  """

  random: float
  one: float

  def normalized(self, score: Any) -> Any:
    """Appendix B: (score - random) / (one - random); also of arrays."""
    return (score - self.random) / (self.one - self.random)


class Erratum(NamedTuple):
  """An entry of the table that is not what it should be.

  Attributes:
    game: its row.
    column: its column.
    printed: what the paper has.
    kept: what stands in our file.
    note: what is wrong.
  """

  game: str
  column: str
  printed: str
  kept: str
  note: str


class Printed(NamedTuple):
  """A row of the paper's Table 1, in percent and in games.

  Attributes:
    agent: its name.
    mean: the mean of human-normalised scores.
    median: the median of these scores.
    above_human: how many games are above human play.
    above_dqn: games.
  """

  agent: str
  mean: float
  median: float
  above_human: int
  above_dqn: int


@functools.cache
def raw_scores() -> Mapping[str, Mapping[str, float]]:
  """Appendix C: game -> column -> score, in the paper's order."""
  return {
    row.pop("game"): {name: float(cell) for name, cell in row.items()}
    for row in rows("raw_scores.csv")
  }


@functools.cache
def table1() -> List[Printed]:
  """Table 1, as printed."""
  return [
    Printed(
      row["agent"],
      float(row["mean"]),
      float(row["median"]),
      int(row["above_human"]),
      int(row["above_dqn"]),
    )
    for row in rows("table1.csv")
  ]


@functools.cache
def errata() -> List[Erratum]:
  """What is wrong with entries of Appendix C."""
  return [Erratum(**row) for row in rows("errata.csv")]


def game(name: str) -> Optional[str]:
  """How the table spells a game, or None if it is not there.

  `"Breakout"`, `"breakout"`, `"ALE/Breakout-v5"` and
  `"BreakoutNoFrameskip-v4"` are one game; `"MinAtar/Breakout"` is another.
  """
  prefix = name.rpartition("/")[0].lower()
  if prefix not in _PREFIXES:
    return None
  return _by_key().get(game_names.key(name))


def reference(name: str) -> Optional[Reference]:
  """A game's random and human scores, or None if it is not in the table."""
  known = game(name)
  return None if known is None else scale(known)


def scale(known: str) -> Reference:
  """The random and human scores of a game in the table's spelling."""
  row = raw_scores()[known]
  return Reference(row["Random"], row["Human"])


@functools.cache
def _by_key() -> Dict[str, str]:
  return {game_names.key(known): known for known in raw_scores()}


def rows(name: str) -> List[Dict[str, str]]:
  """The rows of a table among the data files."""
  file = resources.files("tf_mmdrl.report") / "data" / name
  return list(csv.DictReader(file.read_text().splitlines()))
