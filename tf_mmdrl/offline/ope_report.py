"""Evaluations as a page, tables, figures and JSON, in the report's style."""

import json
import pathlib
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import plotting, whole_files
from tf_mmdrl.offline import evaluated, importance, laws, ope
from tf_mmdrl.offline.evaluated import Evaluated
from tf_mmdrl.offline.laws import Interval
from tf_mmdrl.offline.overview import Data
from tf_mmdrl.report import page, tables
from tf_mmdrl.report.page import Picture, Section
from tf_mmdrl.report.tables import Score, Table

WORDS = {
  importance.FITTED: "fitted",
  importance.NEIGHBOURS: "neighbours",
  importance.ROBUST: "doubly robust",
  importance.ORDINARY: "importance sampling",
  importance.PER_DECISION: "per decision",
  importance.NORMALISED: "self-normalised",
  importance.CLIPPED: "clipped",
}
_SHOWN = (importance.FITTED, importance.ROBUST, importance.NORMALISED)


def heading(statistic: str) -> str:
  """A statistic in words."""
  name, _, number = statistic.partition("_")
  words = {"quantile": f"{number} quantile", "below": f"P(G < {number})"}
  return words.get(name, {"cvar": "CVaR 5 %"}.get(name, name))


def statistics_table(found: Evaluated) -> Table:
  """A row for each estimator, and one for what was played."""
  names = list(next(iter(found.statistics.values())))
  rows: List[List[Any]] = []
  for estimator, row in found.statistics.items():
    scores = [_score(row[name]) for name in names]
    rows.append([WORDS[estimator], *scores, *_distances(found, estimator)])
  if found.truth is not None:
    exact = laws.Law(
      np.sort(found.truth), np.full(len(found.truth), 1 / len(found.truth))
    )
    thresholds = [float(n.partition("_")[2]) for n in names if "below" in n]
    played = laws.statistics(exact, thresholds)
    cells = [float(played[name]) for name in names]
    rows.append(["played", *cells, None, None])
  extra = ["w1", "energy"] if found.truth is not None else []
  words = ["W1 to played", "energy distance"] if extra else []
  return Table(
    f"statistics_{page.slug([found.title])}",
    f"Return of {found.title} from the data's first states",
    ["estimator", *names, *extra],
    ["estimator", *map(heading, names), *words],
    rows,
    ["95 % intervals by a bootstrap over episodes."],
    decimals=2,
  )


def _distances(found: Evaluated, estimator: str) -> List[float]:
  if found.truth is None:
    return []
  return list(laws.distances(found.estimates[estimator].law(), found.truth))


def correlation_table(found: Evaluated) -> Table:
  """How the parts of vector returns go together."""
  rows: List[List[Any]] = []
  kinds = {"fitted": found.correlation, "played": found.true_correlation}
  for name, matrix in kinds.items():
    for number, row in enumerate(matrix or ()):
      rows.append([f"{name}, reward {number}", *row])
  numbers = range(len(found.correlation or ()))
  return Table(
    f"correlation_{page.slug([found.name])}",
    f"Correlations of the returns of {found.name}",
    ["return", *(f"reward_{number}" for number in numbers)],
    ["return", *(f"reward {number}" for number in numbers)],
    rows,
    ["Of the joint distribution, from the data's first states."],
    decimals=2,
  )


def ranking_table(
  ordered: Sequence[Evaluated],
  estimator: str,
  statistic: str,
  counts: np.ndarray,
) -> Table:
  """Policies, the best first, with the difference to the one before."""
  by = _differences_by(ordered, estimator)
  is_model = by in importance.MODELS  # other first states are not all
  rows: List[List[Any]] = []
  for place, each in enumerate(ordered):
    apart: Optional[Score] = None
    if place:
      apart = _score(
        laws.difference(
          ordered[place - 1].estimates[by],
          each.estimates[by],
          None if is_model else counts,
          statistic,
        )
      )
    rows.append(
      [each.name, _score(each.statistics[estimator][statistic]), apart]
    )
  part = ordered[0].part
  of = "" if part is None else f" of reward {part}"
  return Table(
    "ranking" if part is None else f"ranking_{part}",
    f"Policies by {heading(statistic)}{of}, {WORDS[estimator]}",
    ["policy", statistic, "less_than_the_one_above_by"],
    ["policy", heading(statistic), "below the one above by"],
    rows,
    [
      f"Differences are {WORDS[by]}, without intervals."
      if is_model
      else f"Differences are {WORDS[by]}, on the same draws of episodes."
    ],
    decimals=2,
  )


def _differences_by(found: Sequence[Evaluated], estimator: str) -> str:
  """The doubly robust law, whose episodes show how sure it is."""
  is_there = all(importance.ROBUST in each.estimates for each in found)
  if estimator == importance.FITTED and is_there:
    return importance.ROBUST
  return estimator


def _shown(found: Interval) -> str:
  return "–" if np.isnan(found.point) else f"{found.point:.2f}"


def _score(found: Interval) -> Score:
  return Score(*found)


def figure(found: Evaluated, logged: np.ndarray) -> Any:
  """Distribution functions, and histograms of the fit and what was seen."""
  drawn = plotting.new_figure(5.6)
  above, below = drawn.subplots(2, 1)
  shown = [name for name in found.estimates if name in _SHOWN]
  shown = shown or list(found.estimates)[:1]
  for index, name in enumerate(shown):
    law = found.estimates[name].law().proper()
    style = dict(color=plotting.colour(index), ls=plotting.dash(index))
    above.plot(
      law.grid, np.cumsum(law.probabilities), label=WORDS[name], **style
    )
  grid = found.estimates[shown[0]].grid
  seen = {"logged": (logged, plotting.GREY)}
  if found.truth is not None:
    seen["played"] = (found.truth, plotting.INK)
  for name, (returns, colour) in seen.items():
    values = np.sort(returns)
    shares = np.arange(1, len(values) + 1) / len(values)
    above.step(values, shares, where="post", color=colour, lw=1, label=name)
  above.set(ylim=(0, 1.02), ylabel="P(G <= x)", title="Distribution function")
  bins = np.linspace(grid[0], grid[-1], 41)
  law = found.estimates[shown[0]].law().proper()
  below.hist(
    law.grid,
    bins,
    weights=np.nan_to_num(law.probabilities),
    color=plotting.colour(0),
    alpha=0.5,
  )
  for returns, colour in seen.values():
    even = np.full(len(returns), 1 / len(returns))
    below.hist(returns, bins, weights=even, histtype="step", color=colour)
  below.set(xlabel="return", ylabel="probability", title="Histogram")
  plotting.legend_below(drawn, above)
  return drawn


def make(
  found: Sequence[Evaluated],
  data: Data,
  options: ope.Options,
  name: str,
  statistic: str,
) -> Tuple[page.Report, List[Evaluated]]:
  """The page, and the policies in the order in which it ranks them.

  Args:
    found: of each policy.
    data: what they were evaluated on.
    options: how they were.
    name: of the data set.
    statistic: what several policies are ranked by.

  Returns:
    The report, and `found` in its order.
  """
  config = options.config
  ordered: List[Evaluated] = []
  rankings: List[Table] = []
  for part in sorted({each.part for each in found}, key=lambda part: part or 0):
    alike = [each for each in found if each.part == part]
    if len(alike) > 1:
      estimator = next(iter(alike[0].statistics))
      alike = evaluated.ranked(alike, estimator, statistic)
      counts = laws.draws(
        len(data.returns), options.repetitions, config.system.seed
      )
      rankings.append(ranking_table(alike, estimator, statistic, counts))
    ordered.extend(alike)
  about = (
    f"{config.agent.name} fitted to {data.episodes.num_steps:,} transitions of"
    f" {name}, discount {config.agent.gamma:g}, seed {config.system.seed}."
  )
  return _report(ordered, data, name, about, rankings), ordered


def _report(
  found: Sequence[Evaluated],
  data: Data,
  name: str,
  about: str,
  rankings: List[Table],
) -> page.Report:
  """The whole page."""
  sections = []
  if rankings:
    sections.append(Section("Ranking", tables=rankings))
  for each in found:
    logged = data.returns if each.part is None else data.returns[:, each.part]
    with plotting.style():
      drawn = figure(each, logged)
      picture = Picture(
        f"returns_{page.slug([each.title])}",
        f"Return of {each.title}: estimates, and what was logged"
        + (" and played." if each.truth is not None else "."),
        plotting.to_png(drawn),
        plotting.to_svg(drawn),
      )
    made = [statistics_table(each)]
    if each.part == 0:
      made.append(correlation_table(each))
    warnings = [] if each.part else each.warnings
    sections.append(Section(each.title, warnings, [picture], made))
  names = sorted({each.name for each in found})
  first = next(iter(found[0].statistics))
  mean, cvar = (found[0].statistics[first][key] for key in ("mean", laws.CVAR))
  cards = [
    (_shown(mean), f"mean return of {found[0].title}, {WORDS[first]}"),
    (_shown(cvar), "its CVaR 5 %"),
    (f"{len(data.returns):,}", "logged episodes"),
  ]
  notes = [
    about,
    "The fitted distribution has an interval only with --refits, which fits to"
    " bootstrapped episodes again.",
    *(
      f"{each.name}: {text}"
      for each in found
      if not each.part
      for text in each.warnings
    ),
  ]
  return page.Report(
    "What would these policies return?"
    if len(names) > 1
    else f"What would {found[0].name} return?",
    f"Estimated from {name}, without playing",
    cards,
    notes,
    sections,
  )


def write(
  made: page.Report,
  found: Sequence[Evaluated],
  directory: pathlib.Path,
) -> List[pathlib.Path]:
  """Writes the page, its tables and figures, `ope.json` and `ope.md`."""
  files = page.write(made, directory)
  content = {
    "about": made.notes[0],
    "policies": [evaluated.to_json(each) for each in found],
  }
  text = "\n".join(
    [
      f"# {made.title}",
      "",
      *(f"- {note}" for note in made.notes),
      "",
      *(
        tables.to_markdown(table)
        for section in made.sections
        for table in section.tables
      ),
    ]
  )
  whole_files.write_all(
    directory,
    {
      "ope.json": json.dumps(
        content, indent=1, sort_keys=True, allow_nan=False
      ).encode(),
      "ope.md": text.encode(),
    },
  )
  return [*files, directory / "ope.json", directory / "ope.md"]
