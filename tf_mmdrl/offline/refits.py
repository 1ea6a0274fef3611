"""Intervals of fitted distributions: fits to bootstrapped episodes."""

import json
import pathlib
from typing import Callable, Dict, List, Sequence

import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.offline import blocks, fitting, laws
from tf_mmdrl.offline.laws import Estimate, Interval

_FILE = "refits.json"

# For each part of the rewards a statistic's number, by name.
Found = List[Dict[str, float]]


def again(
  fit: fitting.Fit,
  source: Callable[[np.ndarray], blocks.Source],
  estimates: Callable[[], List[Estimate]],
  draws: np.ndarray,
  directory: pathlib.Path,
  thresholds: Sequence[float],
) -> List[Found]:
  """The statistics of fits to bootstrapped episodes; goes on where it was cut.

  Args:
    fit: to the episodes themselves; it is afterwards as it was.
    source: how often each episode counts -> transitions.
    estimates: what the fit says now, of each part of the rewards.
    draws: [R, E] how often each episode counts.
    directory: where the statistics are kept.
    thresholds: c of P(G < c).

  Returns:
    The statistics of each fit.
  """
  path, found = directory / _FILE, []
  # Through JSON, as it is read.
  same = {"identity": fit.identity, "thresholds": list(thresholds)}
  same = json.loads(json.dumps(same))
  if path.exists():
    before = whole_files.read_json(path)
    if all(before.get(key) == value for key, value in same.items()):
      found = before["statistics"]
  base, periods = fit.variables(), max(1, len(fit.history) // 4)
  for weights in draws[len(found) :]:
    fit.assign(base)
    fit.refit(source(weights), periods)
    found.append(
      [statistics(each, thresholds, weights) for each in estimates()]
    )
    whole_files.write_json(path, {**same, "statistics": found})
  fit.assign(base)
  return found[: len(draws)]


def statistics(
  estimate: Estimate, thresholds: Sequence[float], counts=None
) -> Dict[str, float]:
  """Those of an estimate, if episode e is counted counts[e] times."""
  found = laws.statistics(estimate.law(counts), thresholds)
  return {name: float(value) for name, value in found.items()}


def intervals(
  point: Dict[str, float], found: Sequence[Dict[str, float]]
) -> Dict[str, Interval]:
  """Statistics with intervals, if there are at least two fits."""
  if len(found) < 2:
    return {name: Interval(value) for name, value in point.items()}
  made = {}
  for name, value in point.items():
    # Few fits have no reliable quantiles; their spread they have.
    spread = np.std([each[name] for each in found], ddof=1)
    half = laws.student(len(found) - 1) * spread
    made[name] = Interval(value, float(value - half), float(value + half))
  return made
