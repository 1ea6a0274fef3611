"""Tables with a row for each game, each run or each slip."""

from typing import List, Optional, Sequence

import numpy as np

from tf_mmdrl.evaluation import intervals, published, results, scores, tables
from tf_mmdrl.evaluation.results import Agent
from tf_mmdrl.evaluation.tables import Score, Table

_BY_GAME = "A mean over seeds, with its 95 % interval if there are several."


def by_game(
  name: str,
  title: str,
  agents: Sequence[Agent],
  games: Sequence[str],
  *,
  normalized: bool,
) -> Table:
  """A row for each game, a column for each agent.

  Args:
    name: of the files.
    title: of the table.
    agents: the columns.
    games: the rows.
    normalized: percent of human play, or raw scores beside random and human.

  Returns:
    The table.
  """
  raw = published.raw_scores()
  referenced = not normalized and any(game in raw for game in games)
  rows = []
  for game in games:
    reference = raw.get(game, {})
    row: List[object] = [game]
    if referenced:
      row += [reference.get("Random"), reference.get("Human")]
    for agent in agents:
      measured = agent.measured.get(game)
      cell = measured and _score(game, measured, normalized)
      row.append(cell and cell._replace(in_heading=agent.published))
    rows.append(row)
  fixed = ["game", "random", "human"] if referenced else ["game"]
  names = [agent.name for agent in agents]
  notes = [_BY_GAME] if any(not agent.published for agent in agents) else []
  if any(agent.published for agent in agents):
    notes.append(
      "The paper's scores are after 200M frames; MMDQN's are means of 3 seeds,"
      " the seeds of the others and the episodes of all are not given."
    )
  return Table(
    name,
    title,
    [*fixed, *names],
    [*(text.capitalize() for text in fixed), *map(_heading, agents)],
    rows,
    notes,
    best=names,
  )


def improvements(agent: Agent, baseline: Agent) -> Table:
  """Appendix B's percentage improvement of one agent over another."""
  shared = [game for game in agent.measured if game in baseline.measured]
  rows: List[tables.Cells] = []
  for game in shared:
    mine, theirs = agent.measured[game], baseline.measured[game]
    percent = scores.percentage_improvement(
      float(np.mean(mine.values)), float(np.mean(theirs.values))
    )
    rows.append(
      [
        game,
        percent,
        float(scores.log_percentage_improvement(percent)),
        float(scores.log_percentage_improvement(percent, losses=True)),
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
    best = scores.best_evaluation(run.scores)
    episodes = "not given"
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


def slips() -> Table:
  """What is wrong in the paper's table, and what was done about it."""
  columns = published.Slip._fields
  return Table(
    "slips",
    "Slips in the paper's table of raw scores",
    columns,
    [name.capitalize() for name in columns],
    [list(slip) for slip in published.slips()],
  )


def _score(
  game: str, measured: results.Measured, normalized: bool
) -> Optional[Score]:
  values = measured.values
  if normalized:
    shares = [scores.human_normalized(game, value) for value in values]
    if shares[0] is None:
      return None
    values = 100 * np.array(shares, np.float64)
  found = intervals.estimate(scores.mean, values[:, np.newaxis])
  return tables.score(found, measured.seeds, measured.episodes)


def _heading(agent: Agent) -> str:
  """An agent's name; what the paper says of its seeds is for all games."""
  seeds = next(iter(agent.measured.values())).seeds
  known = agent.published and seeds in published.SEEDS.values()
  return f"{agent.name}, {seeds} seeds" if known else agent.name
