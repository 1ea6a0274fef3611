"""The parts of a report: figures and tables that belong together."""

from typing import Any, Dict, List, Optional, Sequence

from tf_mmdrl.core import plotting
from tf_mmdrl.report import (
  agent_curves,
  aggregate_tables,
  caveats,
  figures,
  game_tables,
  joint_calibration,
  pairs,
  published,
  results,
)
from tf_mmdrl.report.page import Picture, Section, slug
from tf_mmdrl.report.results import Agent, Run
from tf_mmdrl.report.scales import Scale

_STATISTICS = {
  "mean": "Mean",
  "median": "Median",
  "iqm": "Interquartile mean",
}

_CALIBRATE = (
  "mmdrl calibrate RUN plays games and leaves their returns with the run; a"
  " report then shows them here beside the particles."
)


def learning_curves(
  runs: Sequence[Run], order: Sequence[str], smooth: int
) -> Section:
  """Curves of each game, and all of them on one sheet."""
  by_game = agent_curves.by_game(runs, smooth)
  levels = {game: _levels(game, lines) for game, lines in by_game.items()}
  pictures = [
    picture(
      slug(["learning", game]),
      f"{game}: mean over seeds of each evaluation's score{_bands(lines)}.",
      figures.curve_figure(game, "score", lines, order, levels[game]),
    )
    for game, lines in by_game.items()
  ]
  if len(by_game) > 1:
    whole = figures.sheet(by_game, order, levels)
    sheet = picture("learning_curves", "All games.", whole)
    pictures.append(sheet._replace(on_page=False))
  return Section("Learning curves", _on_smoothing(smooth), pictures)


def _levels(game: str, lines: Sequence[figures.Curve]) -> Dict[str, float]:
  """The scores to compare with that lie where the curves are."""
  row = published.raw_scores().get(game, {})
  top = max(float(line.estimate.point.max()) for line in lines)
  low = min(float(line.estimate.point.min()) for line in lines)
  room = 0.5 * (top - low)
  marks = {"Human": "human", "MMDQN": "MMDQN (paper)"}
  return {
    words: row[column]
    for column, words in marks.items()
    if column in row and low - room <= row[column] <= top + room
  }


def over_games(
  runs: Sequence[Run], scale: Scale, order: Sequence[str], smooth: int
) -> Section:
  """Curves of statistics over all games."""
  pictures = []
  count = len(scale.games)
  for key, title in _STATISTICS.items() if count > 1 else ():
    lines = agent_curves.over_games(runs, scale, smooth, key)
    pictures.append(
      picture(
        f"aggregate_{key}",
        f"{title} over {count} games{_bands(lines)}.",
        figures.curve_figure(title, f"{scale.name}, %", lines, order, {}),
      )
    )
  return Section("Over all games", _on_smoothing(smooth, pictures), pictures)


def table1(
  own: Sequence[Agent], paper: Sequence[Agent], scale: Scale, last: int
) -> Section:
  """Statistics over games that every agent played, with their figures.

  Args:
    own: the agents of runs.
    paper: the agents in print; none if the scale is not the paper's.
    scale: the games, and what their scores are divided by.
    last: as `results.agents` takes it.

  Returns:
    The section, in the form of the paper's Table 1 on the paper's scale.
  """
  title = "Table 1" if paper else "Scores over all games"
  if not scale.games:
    return Section(title)
  order = [agent.name for agent in [*own, *paper]]
  rows = [aggregate_tables.aggregate(agent, scale) for agent in [*paper, *own]]
  pictures = []
  if len(scale.games) > 1:
    pictures = statistics(rows[len(paper) :], scale, order)
    pictures.append(profile(own, scale, order))
  words = caveats.score_in_words(last)
  if paper:
    table = aggregate_tables.table1(rows, words)
  else:
    table = aggregate_tables.over_games(rows, scale, words)
  return Section(title, pictures=pictures, tables=[table])


def comparisons(
  agents: Sequence[Agent], baseline: Optional[Agent], order: Sequence[str]
) -> Section:
  """How probably each agent beats the others, in the games of both."""
  title = "Probability of improvement"
  found = pairs.compared(agents, baseline)
  if not found:
    return Section(title)
  words = "How probably a run of the first agent beats one of the second in"
  words += " the same game; 50 % is no difference."
  if any(pair.probability.low is not None for pair in found):
    words += " Bars are 95 % intervals."
  drawn = picture(
    "probability_of_improvement",
    words,
    figures.probabilities(found, order),
  )
  return Section(title, pictures=[drawn], tables=[pairs.table(found)])


def improvements(agents: Sequence[Agent], baseline: Optional[Agent]) -> Section:
  """Improvements of agents over a baseline, if there is one."""
  pictures, tables = [], []
  if baseline is None:
    return Section("Improvement")
  for agent in agents:
    table = game_tables.improvements(agent, baseline)
    name = table.name
    if len(agents) > 1:
      name = slug([table.name, agent.name])
    title = f"{agent.name} over {baseline.name}"
    drawn = figures.improvement(table.rows, plotting.wrapped(title, 48))
    if drawn is not None:
      words = f"Improvement of {title}, by Appendix B."
      pictures.append(picture(name, words, drawn))
      tables.append(table._replace(name=name))
  return Section("Improvement", pictures=pictures, tables=tables, folded=True)


def sensitivity(found: Sequence[Run], smooth: int) -> Section:
  """What settings change, where runs of one agent differ in them."""
  pictures = []
  for study in agent_curves.studies(found):
    fixed = f" ({study.fixed})" if study.fixed else ""
    title = f"{study.agent}: {study.field}"
    order = list(study.groups)
    for measure, (lines, reached) in agent_curves.study_curves(
      study, smooth
    ).items():
      parts = ["sensitivity", study.agent, study.field, study.fixed, measure]
      words = f"{title}{fixed}, {measure}"
      pictures += [
        picture(
          slug(parts),
          f"{words}: mean over games and seeds.",
          figures.curve_figure(title, measure, lines, order, {}),
        ),
        picture(
          slug([*parts, "reached"]),
          f"{words}: the best evaluations, with 95 % intervals.",
          figures.reached(title, measure, order, reached),
        ),
      ]
  return Section("Sensitivity", _on_smoothing(smooth, pictures), pictures)


def by_game(agents: Sequence[Agent], games: Sequence[str]) -> Section:
  """Raw and human-normalised scores, a row for each game."""
  found = game_tables.means(agents, games)
  tables = [game_tables.raw_scores(agents, games, found)]
  known = [game for game in games if results.has_reference(game)]
  if known:
    tables.append(game_tables.human_normalized(agents, known, found))
  return Section("Scores by game", tables=tables)


def vector_scores(runs: Sequence[Run]) -> Section:
  """The parts of scores, where rewards were vectors."""
  if all(run.vectors is None for run in runs):
    return Section("Vector scores")
  return Section("Vector scores", tables=[game_tables.vector_scores(runs)])


def joint_returns(runs: Sequence[Run]) -> Section:
  """Joint particles beside what was played, where runs have that."""
  title = "Joint returns"
  rows = [row for run in runs for row in run.joint]
  if not rows:
    known = all(run.vectors is None for run in runs)
    return Section(title, [] if known else [_CALIBRATE])
  pictures = [
    picture(
      slug(["joint_returns", *map(str, row.identity)]),
      f"{joint_calibration.title(row)}: particles of each action at the start"
      " of games (dots) and returns of games that began with it (crosses); in"
      " the titles the correlation of particles, and in brackets of returns.",
      joint_calibration.draw(row),
    )
    for row in rows
  ]
  return Section(title, (), pictures, [joint_calibration.table(rows)])


def statistics(
  aggregates: Sequence[aggregate_tables.Aggregate],
  scale: Scale,
  order: Sequence[str],
) -> List[Picture]:
  """Mean, median, IQM and optimality gap of each agent."""
  words = f"Statistics of {scale.name} scores; bars are 95 % intervals."
  if all(item.estimates["mean"].low is None for item in aggregates):
    words = f"Statistics of {scale.name} scores."
  drawn = figures.statistics(aggregates, order)
  return [picture("statistics", words, drawn)]


def profile(
  agents: Sequence[Agent], scale: Scale, order: Sequence[str]
) -> Picture:
  """The performance profile of agents over the games of a scale."""
  return picture(
    "performance_profile",
    "The share of all games and seeds whose score is above each level. A higher"
    f" line is better; the dotted line is {scale.one}.",
    figures.profiles(agents, scale, order),
  )


def picture(name: str, caption: str, figure: Any) -> Picture:
  """A figure, written once and for all."""
  png = plotting.to_png(figure)
  figure.set_layout_engine("none")  # everything has its place now
  return Picture(name, caption, png, plotting.to_svg(figure))


def _bands(lines: Sequence[figures.Curve]) -> str:
  """What bands are, if there are any."""
  known = any(line.estimate.low is not None for line in lines)
  return "; bands are 95 % intervals" if known else ""


def _on_smoothing(smooth: int, pictures: Sequence[Any] = (None,)) -> List[str]:
  if smooth == 1 or not pictures:
    return []
  return [f"Curves are means over {smooth} evaluations in a row."]
