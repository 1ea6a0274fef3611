"""What `mmdrl calibrate` writes: a CSV and a picture."""

import csv
import io
import math
from typing import Any, List, NamedTuple, Sequence

import numpy as np

from tf_mmdrl.core import plotting, run_files

_PANEL = 1.9  # inches, of a panel's height
_WIDTH = 2.4
_COLUMNS = 3
_NUMBERS = ("crps", "skill", "bias")


class Row(NamedTuple):
  """A run, and how its policy's forecasts were.

  Attributes:
    identity: environment, agent and seed of the run.
    step: of the run, where the policy was exported.
    particles: N.
    found: an `evaluation.calibration.Calibration`.
  """

  identity: run_files.Identity
  step: int
  particles: int
  found: Any


def to_csv(rows: Sequence[Row]) -> str:
  """A line for each run: every number, with the ends of its interval."""
  out = io.StringIO(newline="")
  writer = csv.writer(out, lineterminator="\n")
  for index, row in enumerate(rows):
    columns = _columns(row)
    if not index:
      writer.writerow(columns)
    writer.writerow(columns.values())
  return out.getvalue()


def _columns(row: Row) -> dict:
  found = row.found
  columns = {
    **row.identity._asdict(),
    "step": row.step,
    "particles": row.particles,
    "states": found.states,
    "games": found.games,
    "energy_distance": found.energy_distance,
  }
  intervals = {name: getattr(found, name) for name in _NUMBERS}
  for level, interval in found.coverage.items():
    intervals[f"coverage_{level:g}"] = interval
  for name, interval in intervals.items():
    columns[name] = interval.point
    columns[f"{name}_low"], columns[f"{name}_high"] = interval[1:]
  for index, share in enumerate(found.histogram):
    columns[f"pit_{index}"] = share
  return columns


def picture(rows: Sequence[Row]) -> bytes:
  """A PIT histogram for each environment and agent, the mean over its seeds.

  Args:
    rows: of runs that predict more than a mean.

  Returns:
    A PNG.
  """
  groups: dict = {}
  for row in rows:
    groups.setdefault(row.identity[:2], []).append(row.found)
  columns = min(_COLUMNS, len(groups))
  lines = math.ceil(len(groups) / columns)
  with plotting.style():
    width = max(plotting.WIDTH, _WIDTH * columns)
    figure = plotting.new_figure(_PANEL * lines + 0.5, width)
    panels = figure.subplots(
      lines, columns, squeeze=False, sharex=True, sharey=True
    )
    for panel, (names, found) in zip(panels.flat, groups.items()):
      _draw(panel, f"{names[1]}, {names[0].rpartition('/')[2]}", found)
    for panel in list(panels.flat)[len(groups) :]:
      panel.set_axis_off()
    figure.supxlabel("where the return fell in the predicted distribution")
    figure.supylabel("share of returns")
    return plotting.to_png(figure)


def _draw(panel: Any, title: str, found: List[Any]) -> None:
  """Bars, the level of perfect calibration, and a dot for each seed."""
  each = np.array([one.histogram for one in found])
  bins = each.shape[1]
  centres = (np.arange(bins) + 0.5) / bins
  panel.bar(
    centres, each.mean(0), 0.9 / bins, color=plotting.COLOURS[0], alpha=0.6
  )
  if len(found) > 1:
    for shares in each:
      panel.plot(centres, shares, ".", color=plotting.INK, ms=2.5)
  panel.axhline(1 / bins, color=plotting.COLOURS[4], lw=1.2, ls="--")
  panel.set_title(title)
  panel.set_xlim(0, 1)
