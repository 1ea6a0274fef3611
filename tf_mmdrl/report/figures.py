"""The figures of a report, one function for each."""

import math
from typing import Any, Mapping, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.core import plotting
from tf_mmdrl.report import intervals, score_statistics
from tf_mmdrl.report.aggregate_tables import Aggregate
from tf_mmdrl.report.pairs import Pair
from tf_mmdrl.report.results import Agent
from tf_mmdrl.report.scales import Scale


class Curve(NamedTuple):
  """A line over steps.

  Attributes:
    label: the name of what the curve is of.
    steps: [F].
    estimate: [F] and its interval.
  """

  label: str
  steps: np.ndarray
  estimate: intervals.Estimate


def curves(
  panel: Any,
  lines: Sequence[Curve],
  order: Sequence[str],
  levels: Mapping[str, float],
) -> None:
  """Draws curves with their intervals.

  Args:
    panel: axes to draw in.
    lines: the curves.
    order: all labels in order; it decides colours, so that they mean the same
      in every figure.
    levels: at most two scores to compare with, as thin lines across.
  """
  from matplotlib import ticker

  for line in lines:
    index = order.index(line.label)
    style = dict(color=plotting.colour(index), ls=plotting.dash(index))
    few = len(line.steps) < 15
    panel.plot(
      line.steps,
      line.estimate.point,
      label=line.label,
      marker=plotting.marker(index) if few else None,
      markersize=3.5,
      **style,
    )
    if line.estimate.low is not None:
      low, high = line.estimate.low, line.estimate.high
      plotting.band(panel, line.steps, low, high, style["color"])
  for side, (name, level) in enumerate(levels.items()):
    panel.axhline(level, color=plotting.GREY, lw=0.9, ls=":")
    panel.annotate(
      name,
      (side, level),
      xycoords=("axes fraction", "data"),
      ha=("left", "right")[side],  # so that they never cover each other
      va="bottom",
      fontsize=7.5,
    )
  plotting.count_steps(panel)
  panel.yaxis.set_major_formatter(ticker.FuncFormatter(_short))


def curve_figure(
  title: str,
  ylabel: str,
  lines: Sequence[Curve],
  order: Sequence[str],
  levels: Mapping[str, float],
) -> Any:
  """One panel of curves."""
  figure = plotting.new_figure(3.1)
  panel = figure.subplots()
  curves(panel, lines, order, levels)
  panel.set(title=title, ylabel=ylabel)
  plotting.legend_below(figure, panel)
  return figure


def sheet(
  panels: Mapping[str, Sequence[Curve]],
  order: Sequence[str],
  levels: Mapping[str, Mapping[str, float]],
) -> Any:
  """All games' curves on one sheet, as the paper prints them.

  Args:
    panels: the curves of each game.
    order: the labels in order.
    levels: scores to compare with, by game.
  """
  columns = min(5, math.ceil(math.sqrt(len(panels))))
  rows = math.ceil(len(panels) / columns)
  figure = plotting.new_figure(2.1 * rows + 0.5, 2.6 * columns)
  grid = figure.subplots(rows, columns, squeeze=False).ravel()
  for axes, (game, lines) in zip(grid, panels.items()):
    curves(axes, lines, order, levels[game])
    axes.set_title(game)
  for axes in grid[len(panels) :]:
    axes.set_visible(False)
  most = max(range(len(panels)), key=lambda i: len(list(panels.values())[i]))
  plotting.legend_below(figure, grid[most])
  return figure


def statistics(aggregates: Sequence[Aggregate], order: Sequence[str]) -> Any:
  """Mean, median, IQM and optimality gap of each agent, with intervals."""
  names = {
    "mean": "Mean",
    "median": "Median",
    "iqm": "Interquartile mean",
    "optimality_gap": "Optimality gap (less is better)",
  }
  shown = aggregates[::-1]
  labels = [plotting.wrapped(item.agent.name) for item in shown]
  lines = sum(label.count("\n") + 1 for label in labels)
  figure = plotting.new_figure(4 * (0.55 + 0.2 * lines))
  panels = figure.subplots(4, 1)
  for panel, (key, title) in zip(panels, names.items()):
    for row, item in enumerate(shown):
      found = item.estimates[key]
      index = order.index(item.agent.name)
      style = dict(color=plotting.colour(index), zorder=3)
      if found.low is not None and found.high is not None:
        ends = [100 * found.low, 100 * found.high]
        panel.plot(ends, [row, row], lw=5, alpha=0.4, **style)
      point = 100 * found.point
      panel.plot(point, row, plotting.marker(index), ms=5, **style)
    panel.set_yticks(range(len(shown)), labels)
    panel.set_ylim(-0.6, len(shown) - 0.4)
    panel.set_title(title)
    panel.grid(axis="x")
    panel.grid(visible=False, axis="y")
    panel.margins(x=0.08)
    panel.xaxis.set_major_formatter(_percents())
    panel.xaxis.get_major_locator().set_params(nbins=5)
  return figure


def improvement(rows: Sequence[Sequence[Any]], title: str) -> Optional[Any]:
  """Bars of Appendix B's logarithm of the percentage improvement.

  Args:
    rows: the rows of the table of improvements, best first.
    title: the title of the figure.

  Returns:
    The figure, or None if no game has an improvement.
  """
  known = [row for row in rows if not np.isnan(row[1])]
  if not known:
    return None
  percents = np.array([row[1] for row in known])
  lengths = score_statistics.log_percentage_improvement(percents, losses=True)
  heading = 0.16 * title.count("\n")
  figure = plotting.new_figure(1.0 + heading + 0.16 * len(known))
  panel = figure.subplots()
  colours = np.where(percents < 0, plotting.COLOURS[4], plotting.COLOURS[0])
  places = np.arange(len(known))[::-1]
  panel.barh(places, lengths, color=colours, height=0.72, zorder=3)
  for place, length, percent in zip(places, lengths, percents):
    panel.annotate(
      _signed(percent),
      (length, place),
      xytext=(-3 if length < 0 else 3, 0),
      textcoords="offset points",
      ha="right" if length < 0 else "left",
      va="center",
      fontsize=6.5,
    )
  panel.set_yticks(places, [row[0] for row in known], fontsize=7.5)
  panel.set_ylim(-0.7, len(known) - 0.3)
  ticks = [10.0**k for k in range(1, 7) if 10.0**k <= np.abs(percents).max()]
  marks = [-t for t in ticks if -t >= percents.min()] + [0]
  marks += [t for t in ticks if t <= percents.max()]
  at = score_statistics.log_percentage_improvement(marks, losses=True)
  panel.set_xticks(at, [f"{mark:+,.0f}" if mark else "0" for mark in marks])
  panel.margins(x=0.14)
  panel.grid(axis="x")
  panel.grid(visible=False, axis="y")
  panel.set_xlabel("improvement in percent, log(|p| + 1) scale")
  figure.suptitle(title, x=0.02, ha="left", fontsize=10, fontweight="bold")
  return figure


def profiles(
  agents: Sequence[Agent], scale: Scale, order: Sequence[str]
) -> Any:
  """The share of games and seeds above each score of a scale."""
  matrices = {agent.name: scale.matrix(agent) for agent in agents}
  pooled = np.concatenate([m.ravel() for m in matrices.values()])
  top = float(np.clip(np.quantile(pooled, 0.95), 1.2, 8))
  thresholds = np.linspace(0, top, 161)
  figure = plotting.new_figure(3.2)
  panel = figure.subplots()
  for name, matrix in matrices.items():
    index = order.index(name)
    found = intervals.profile(matrix, thresholds)
    style = dict(color=plotting.colour(index))
    line = dict(style, ls=plotting.dash(index), label=name)
    panel.step(100 * thresholds, found.point, where="post", **line)
    if found.low is not None:
      plotting.band(
        panel, 100 * thresholds, found.low, found.high, style["color"]
      )
  panel.axvline(100, color=plotting.GREY, lw=0.9, ls=":")
  panel.set(ylim=(0, 1.02), ylabel="share of scores above")
  panel.set_xlabel(f"{scale.name} score")
  panel.xaxis.set_major_formatter(_percents())
  panel.set_title("Performance profile")
  plotting.legend_below(figure, panel)
  return figure


def probabilities(found: Sequence[Pair], order: Sequence[str]) -> Any:
  """How probably agents beat others, with a line at no difference."""
  figure = plotting.new_figure(1.8 + 0.28 * len(found))
  panel = figure.subplots()
  labels = [f"{pair.first.name} > {pair.second.name}" for pair in found]
  places = range(len(found))[::-1]
  for place, pair in zip(places, found):
    index = order.index(pair.first.name)
    style = dict(color=plotting.colour(index), zorder=3)
    low, high = pair.probability.low, pair.probability.high
    if low is not None and high is not None:
      panel.plot([100 * low, 100 * high], [place] * 2, lw=5, alpha=0.4, **style)
    point = 100 * pair.probability.point
    panel.plot(point, place, plotting.marker(index), ms=5, **style)
  panel.axvline(50, color=plotting.GREY, lw=0.9, ls=":")
  panel.set_yticks(places, [plotting.wrapped(label, 40) for label in labels])
  panel.set(xlim=(-2, 102), ylim=(-0.6, len(found) - 0.4))
  panel.grid(axis="x")
  panel.grid(visible=False, axis="y")
  panel.xaxis.set_major_formatter(_percents())
  panel.set_title("Probability of improvement")
  return figure


def shares_of_mean(agent: Agent, scale: Scale, count: int = 12) -> Any:
  """The games that give the most to an agent's mean."""
  games = scale.games
  means = 100 * scale.matrix(agent).mean(axis=0) / len(games)
  top = np.argsort(-means)[:count]
  figure = plotting.new_figure(0.9 + 0.2 * len(top))
  panel = figure.subplots()
  places = np.arange(len(top))[::-1]
  panel.barh(places, means[top], color=plotting.COLOURS[0], zorder=3)
  for place, value in zip(places, means[top]):
    panel.annotate(
      f"{value:,.0f} %",
      (value, place),
      xytext=(3, 0),
      textcoords="offset points",
      va="center",
      fontsize=7.5,
    )
  panel.set_yticks(places, [games[index] for index in top])
  panel.margins(x=0.14)
  panel.grid(axis="x")
  panel.grid(visible=False, axis="y")
  panel.set_xlabel(f"points of {agent.name}'s mean of {means.sum():,.0f} %")
  panel.set_title("What carries the mean")
  return figure


def reached(
  title: str,
  ylabel: str,
  values: Sequence[str],
  found: Sequence[intervals.Estimate],
) -> Any:
  """A score for each value of a setting, with its interval."""
  figure = plotting.new_figure(3.1)
  panel = figure.subplots()
  for place, item in enumerate(found):
    colour = plotting.colour(place)
    if item.low is not None:
      panel.plot(
        [place, place], [item.low, item.high], lw=6, alpha=0.4, color=colour
      )
    mark = plotting.marker(place)
    panel.plot(place, item.point, mark, ms=6, color=colour)
  turn = 30 if max(map(len, values)) > 6 else 0
  align = "right" if turn else "center"
  panel.set_xticks(range(len(values)), values, rotation=turn, ha=align)
  panel.set_xlim(-0.5, len(values) - 0.5)
  panel.set(title=title, ylabel=ylabel)
  return figure


def _percents() -> Any:
  from matplotlib import ticker

  return ticker.FuncFormatter(lambda value, _: f"{value:,.0f} %")


def _signed(percent: float) -> str:
  if not percent:
    return "0"
  return f"{percent:+,.0f}" if abs(percent) >= 10 else f"{percent:+.1f}"


def _short(value: float, _: int) -> str:
  """10k rather than 10000."""
  size = abs(value)
  for limit, letter in ((1e6, "M"), (1e4, "k")):
    if size >= limit:
      scale = 1e6 if letter == "M" else 1e3
      return f"{value / scale:,.10g}{letter}"
  return f"{value:,.10g}"
