"""Statistics over all games, in the form of the paper's Table 1."""

from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.report import intervals, published, score_statistics, tables
from tf_mmdrl.report.results import Agent
from tf_mmdrl.report.scales import Scale
from tf_mmdrl.report.tables import Score, Table

_HEAVY = "VideoPinball"  # human and random are close, so it outweighs the rest

STATISTICS: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
  "mean": score_statistics.mean,
  "median": score_statistics.median,
  "iqm": score_statistics.iqm,
  "optimality_gap": score_statistics.optimality_gap,
}


class Aggregate(NamedTuple):
  """An agent over all games of a scale, as shares.

  Attributes:
    agent: the agent.
    games: the games that the statistics are over.
    estimates: the estimates, by the name of the statistic.
  """

  agent: Agent
  games: Sequence[str]
  estimates: Mapping[str, intervals.Estimate]


def aggregate(agent: Agent, scale: Scale) -> Aggregate:
  """All statistics of an agent over the games of a scale."""
  matrix, games = scale.matrix(agent), scale.games
  estimates = {
    name: intervals.estimate(statistic, matrix)
    for name, statistic in STATISTICS.items()
  }
  rest = [index for index, game in enumerate(games) if game != _HEAVY]
  if rest:
    estimates["mean_without_videopinball"] = intervals.estimate(
      score_statistics.mean, matrix[:, rest]
    )
  return Aggregate(agent, games, estimates)


def games_above(
  agent: Agent, other: Mapping[str, float], *, strictly: bool
) -> int:
  """The games in which an agent's mean raw score is above another's."""
  count = 0
  for game, bar in other.items():
    score = float(np.mean(agent.measured[game].values))
    count += score > bar or (score == bar and not strictly)
  return count


def table1(aggregates: Sequence[Aggregate], score: str) -> Table:
  """The form of the paper's Table 1, in percent of human play.

  Args:
    aggregates: all over the same games.
    score: what a seed's score is, in words.

  Returns:
    The table.
  """
  raw = published.raw_scores()
  rows = []
  for agent, games, estimates in aggregates:
    human = {game: raw[game]["Human"] for game in games}
    dqn = {game: raw[game]["DQN"] for game in games}
    rows.append(
      [
        agent.name,
        _percent(estimates["mean"]),
        _percent(estimates["median"]),
        _percent(estimates["iqm"]),
        games_above(agent, human, strictly=True),
        games_above(agent, dqn, strictly=False),
        _percent(estimates.get("mean_without_videopinball")),
        _percent(estimates["optimality_gap"]),
        games_above(agent, dqn, strictly=True),
        len(games),
        _seeds(agent, games),
        _episodes(agent, games),
      ]
    )
  headings = {
    "agent": "Agent",
    "mean": "Mean %",
    "median": "Median %",
    "iqm": "IQM %",
    "above_human": "> Human",
    "above_dqn": "≥ DQN",
    "mean_without_videopinball": f"Mean % without {_HEAVY}",
    "optimality_gap": "Optimality gap %",
    "above_dqn_strictly": "> DQN",
    "games": "Games",
    "seeds": "Seeds",
    "episodes": "Episodes",
  }
  return Table(
    "table1",
    "Human-normalised scores over all games",
    list(headings),
    list(headings.values()),
    rows,
    [
      f"Percent of human play, 0 % for random play; {score}. Square brackets"
      " are 95 % intervals (stratified bootstrap over seeds), where there are"
      " several seeds.",
      "Human and DQN are the paper's raw scores. The optimality gap is what is"
      " missing to human play; less is better.",
    ],
  )


def over_games(
  aggregates: Sequence[Aggregate], scale: Scale, score: str
) -> Table:
  """Statistics on a scale that is not the paper's.

  Args:
    aggregates: all over the games of the scale.
    scale: the scale.
    score: what a seed's score is, in words.

  Returns:
    The table.
  """
  columns = {
    "iqm": "IQM %",
    "median": "Median %",
    "mean": "Mean %",
    "optimality_gap": "Optimality gap %",
  }
  rows = [
    [
      agent.name,
      *(_percent(estimates[name]) for name in columns),
      len(games),
      _seeds(agent, games),
      _episodes(agent, games),
    ]
    for agent, games, estimates in aggregates
  ]
  return Table(
    "over_games",
    f"Scores over all games; {scale.one} is 100 %",
    ["agent", *columns, "games", "seeds", "episodes"],
    ["Agent", *columns.values(), "Games", "Seeds", "Episodes"],
    rows,
    [
      f"Percent of {scale.one}'s mean score, 0 % for random play; {score}."
      " Square brackets are 95 % intervals (stratified bootstrap over seeds),"
      f" where there are several seeds. They take {scale.one}'s means as given,"
      " so its own interval is that of its seeds around their mean.",
      f"The optimality gap is what is missing to {scale.one}; less is better.",
    ],
  )


def table1_compared(aggregates: Sequence[Aggregate]) -> Table:
  """The paper's Table 1 beside what its own raw scores give."""
  ours = {item.agent.name: item for item in aggregates}
  raw = published.raw_scores()
  dqn = {game: row["DQN"] for game, row in raw.items()}
  human = {game: row["Human"] for game, row in raw.items()}
  rows: List[tables.Cells] = []
  for printed in published.table1():
    found = ours.get(printed.agent)
    computed: List[Optional[float]] = [None] * 5
    if found is not None:
      percents = [
        100 * float(found.estimates[name].point)
        for name in ("mean", "mean_without_videopinball", "median")
      ]
      computed = [
        *percents,
        games_above(found.agent, human, strictly=True),
        games_above(found.agent, dqn, strictly=False),
      ]
    mean, without, median, above_human, above_dqn = computed
    rows.append(
      [printed.agent, printed.mean, mean, without, printed.median, median]
      + [printed.above_human, above_human, printed.above_dqn, above_dqn]
      + [
        published.SEEDS.get(printed.agent, published.NOT_GIVEN),
        published.NOT_GIVEN,
      ]
    )
  headings = {
    "agent": "Agent",
    "paper_mean": "Mean %, paper",
    "mean": "from its scores",
    "mean_without_videopinball": f"without {_HEAVY}",
    "paper_median": "Median %, paper",
    "median": "from its scores",
    "paper_above_human": "> Human, paper",
    "above_human": "from its scores",
    "paper_above_dqn": "> DQN, paper",
    "at_or_above_dqn": "≥ DQN from its scores",
    "seeds": "Seeds",
    "episodes": "Episodes",
  }
  return Table(
    "table1_compared",
    "The paper's Table 1, and what its raw scores give",
    list(headings),
    list(headings.values()),
    rows,
    [
      "“From its scores” normalises the columns of Appendix C with its human"
      " and random columns. Table 1 took all rows but MMDQN's from Yang et al."
      " (2019), who must have normalised with other reference scores: only"
      " MMDQN's row agrees. Most of the difference of the means is one game: in"
      f" {_HEAVY} human play is 1,411 points above random play, so a score of"
      " 750,000 counts as 52,000 %. Without it the means of DQN and QR-DQN-1"
      " come close to those printed.",
      "There are no raw scores of Rainbow, IQN, FQF and Prior. in the paper;"
      " the column Prior. Duel. of Appendix C is another agent than the row"
      " Prior. of Table 1.",
    ],
    decimals=0,
  )


def _percent(found: Optional[intervals.Estimate]) -> Optional[Score]:
  return None if found is None else tables.score(found.percent())


def _seeds(agent: Agent, games: Sequence[str]) -> str:
  """The seeds behind a row, where games have different ones their number."""
  found = list(dict.fromkeys(agent.measured[game].seeds for game in games))
  if len(found) == 1:
    return found[0]
  counts = sorted({len(agent.measured[game].values) for game in games})
  return f"{'–'.join(map(str, counts))} a game"


def _episodes(agent: Agent, games: Sequence[str]) -> object:
  counts = [agent.measured[game].episodes for game in games]
  known = [count for count in counts if count is not None]
  return sum(known) if len(known) == len(counts) else published.NOT_GIVEN
