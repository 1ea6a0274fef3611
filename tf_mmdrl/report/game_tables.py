"""Tables with a row for each game, each run or each erratum."""

import functools
from typing import List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.report import (
  intervals,
  published,
  results,
  score_statistics,
  tables,
)
from tf_mmdrl.report.results import Agent
from tf_mmdrl.report.tables import Score, Table

# (agent, game) -> the mean over seeds.
Means = Mapping[Tuple[str, str], intervals.Estimate]
_BY_GAME = "A mean over seeds, with its 95 % interval if there are several."


def means(agents: Sequence[Agent], games: Sequence[str]) -> Means:
  """Each agent's mean raw score in each game that it has played."""
  found = {}
  for agent in agents:
    for game in games:
      if game in agent.measured:
        values = agent.measured[game].values[:, np.newaxis]
        found[agent.name, game] = intervals.estimate(
          score_statistics.mean, values
        )
  return found


def raw_scores(
  agents: Sequence[Agent], games: Sequence[str], found: Means
) -> Table:
  """Raw scores, a row for each game, beside those of random and human play.

  Args:
    agents: the columns.
    games: the rows.
    found: their means.

  Returns:
    The table.
  """
  table = _by_game("raw_scores", "Raw scores", agents, games, found)
  raw = published.raw_scores()
  if not any(game in raw for game in games):
    return table
  rows = []
  for game, *cells in table.rows:
    row = raw.get(game, {})
    rows.append([game, row.get("Random"), row.get("Human"), *cells])
  return table._replace(
    columns=["game", "random", "human", *table.columns[1:]],
    headings=["Game", "Random", "Human", *table.headings[1:]],
    rows=rows,
  )


def human_normalized(
  agents: Sequence[Agent], games: Sequence[str], found: Means
) -> Table:
  """Scores in percent of human play, a row for each game.

  Args:
    agents: the columns.
    games: the rows; all with a reference.
    found: their mean raw scores.

  Returns:
    The table.
  """
  shares = {
    (agent, game): estimate.mapped(functools.partial(_percent, game))
    for (agent, game), estimate in found.items()
    if game in games
  }
  title = "Percent of human play"
  return _by_game("human_normalized", title, agents, games, shares)


def improvements(agent: Agent, baseline: Agent) -> Table:
  """Appendix B's percentage improvement of one agent over another."""
  shared = [game for game in agent.measured if game in baseline.measured]
  rows: List[tables.Cells] = []
  for game in shared:
    mine, theirs = agent.measured[game], baseline.measured[game]
    percent = score_statistics.percentage_improvement(
      float(np.mean(mine.values)), float(np.mean(theirs.values))
    )
    rows.append(
      [
        game,
        percent,
        float(score_statistics.log_percentage_improvement(percent)),
        float(
          score_statistics.log_percentage_improvement(percent, losses=True)
        ),
        mine.seeds,
        mine.episodes,
        theirs.seeds,
        theirs.episodes,
      ]
    )
  headings = {
    "game": "Game",
    "percentage_improvement": "Improvement %",
    "log_percentage_improvement": "Log, as printed",
    "log_percentage_improvement_with_losses": "Log, with losses",
    "seeds": "Seeds",
    "episodes": "Episodes",
    "baseline_seeds": "Baseline's seeds",
    "baseline_episodes": "Baseline's episodes",
  }
  return Table(
    "improvement",
    f"{agent.name} over {baseline.name}, game by game",
    list(headings),
    list(headings.values()),
    sorted(rows, key=lambda row: (np.isnan(row[1]), -row[1])),
    [
      "Of raw scores, relative to the size of the baseline's; Appendix B"
      " divides by the score itself, which turns a gain over a score below 0"
      " into a loss. Over a baseline of 0 there is none. Appendix B's logarithm"
      " is 0 for every loss; “with losses” gives these their sign.",
    ],
    decimals=2,
  )


def runs(found: Sequence[results.Run]) -> Table:
  """Every run: how far it came, and what was counted."""
  headings = ["Agent", "Game", "Seed", "Steps", "Evaluations", "Best"]
  headings += ["At step", "Last", "Episodes each"]
  rows = []
  for run in found:
    best = score_statistics.best_evaluation(run.scores)
    episodes = published.NOT_GIVEN
    if run.episodes is not None:
      counts = sorted({int(count) for count in run.episodes})
      episodes = "–".join(
        f"{count:,}" for count in {counts[0]: 0, counts[-1]: 0}
      )
    rows.append(
      [
        run.agent,
        run.game,
        str(run.seed),
        int(run.steps[-1]),
        len(run.scores),
        float(run.scores[best]),
        int(run.steps[best]),
        float(run.scores[-1]),
        episodes,
      ]
    )
  columns = [heading.lower().replace(" ", "_") for heading in headings]
  return Table("runs", "The runs", columns, headings, rows)


def vector_scores(found: Sequence[results.Run]) -> Table:
  """The best evaluation of every run whose scores are vectors."""
  parts = max(run.vectors.shape[1] for run in found if run.vectors is not None)
  headings = ["Agent", "Game", "Seed", "Utility", "Criterion", "Steps", "Worth"]
  headings += [f"Part {index}" for index in range(parts)]
  rows = []
  for run in found:
    if run.vectors is None:
      continue
    best = score_statistics.best_evaluation(run.scores)
    vector = [float(part) for part in run.vectors[best]]
    rows.append(
      [
        run.agent,
        run.game,
        str(run.seed),
        str(run.settings.get("agent.utility", published.NOT_GIVEN)),
        str(run.settings.get("agent.criterion", published.NOT_GIVEN)),
        int(run.steps[best]),
        float(run.scores[best]),
        *vector,
        *[None] * (parts - len(vector)),
      ]
    )
  columns = [heading.lower().replace(" ", "_") for heading in headings]
  notes = ["Mean sums of rewards over the evaluation's games, undiscounted."]
  title = "What vectors of scores the best evaluations reached"
  return Table("vector_scores", title, columns, headings, rows, notes, 3)


def errata() -> Table:
  """What is wrong in the paper's table, and what was done about it."""
  columns = published.Erratum._fields
  return Table(
    "errata",
    "Errata in the paper's table of raw scores",
    columns,
    [name.capitalize() for name in columns],
    [list(erratum) for erratum in published.errata()],
  )


def _by_game(
  name: str,
  title: str,
  agents: Sequence[Agent],
  games: Sequence[str],
  found: Means,
) -> Table:
  rows: List[tables.Cells] = []
  for game in games:
    cells = [
      _cell(agent, game, found.get((agent.name, game))) for agent in agents
    ]
    rows.append([game, *cells])
  notes = [_BY_GAME] if any(not agent.published for agent in agents) else []
  if any(agent.published for agent in agents):
    notes.append(
      "The paper's scores are after 200M frames; MMDQN's are means of 3 seeds,"
      " the seeds of the others and the episodes of all are not given."
    )
  names = [agent.name for agent in agents]
  headings = ["Game", *map(_heading, agents)]
  columns = ["game", *names]
  return Table(name, title, columns, headings, rows, notes, best=names)


def _cell(
  agent: Agent, game: str, found: Optional[intervals.Estimate]
) -> Optional[Score]:
  if found is None:
    return None
  measured = agent.measured[game]
  cell = tables.score(found, measured.seeds, measured.episodes)
  return cell._replace(in_heading=agent.published)


def _percent(game: str, score: np.ndarray) -> np.ndarray:
  """Scores in per cent of human play; a larger score gives a larger one."""
  return 100 * published.scale(game).normalized(score)


def _heading(agent: Agent) -> str:
  """An agent's name; what the paper says of its seeds is for all games."""
  seeds = next(iter(agent.measured.values())).seeds
  known = agent.published and seeds in published.SEEDS.values()
  return f"{agent.name}, {seeds} seeds" if known else agent.name
