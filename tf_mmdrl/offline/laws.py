"""Estimated distributions of a return, and what they say, with intervals.

An estimate is what each episode adds to the probabilities of a grid of
returns. So every estimator is bootstrapped in the same way, by counting
episodes more or less often, and two policies on the same draws of episodes.
"""

import math
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import errors

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
CVAR = "cvar"  # of the lowest 5 %
MEAN = "mean"
_POINTS = 501
_FEWEST_POINTS = 101
_NUMBERS = 40_000_000  # of a table of episodes x points
_SHARE = 0.05  # of CVaR
_STUDENT = (12.7062, 4.3027, 3.1824, 2.7764)  # for 1 to 4 degrees of freedom
_BESIDE = 0.01  # of a gap: how far below a threshold the next point lies


class Law(NamedTuple):
  """Probabilities of returns.

  Attributes:
    grid: [K] returns, increasing.
    probabilities: [..., K], summing to 1; signed where an estimator's are,
      before `proper`; NaN where no episode has any weight.
  """

  grid: np.ndarray
  probabilities: np.ndarray

  def proper(self) -> "Law":
    """The nearest distribution: its function rises, from 0 to 1."""
    below = np.cumsum(self.probabilities, axis=-1)
    below = np.maximum.accumulate(np.clip(below, 0, 1), axis=-1)
    below[..., -1] = np.where(np.isnan(below[..., -1]), np.nan, 1.0)
    return Law(self.grid, np.diff(below, prepend=0.0, axis=-1))


class Estimate(NamedTuple):
  """What an estimator made of the episodes.

  Attributes:
    name: of the estimator.
    grid: [K] returns.
    mass: [E, K] what each episode adds.
    is_normalised: whether the sum is divided by its own total, not by E.
    log_weights: [E] logarithms of the episodes' importance weights, which may
      be too large or small themselves; None if there are none.
  """

  name: str
  grid: np.ndarray
  mass: np.ndarray
  is_normalised: bool = False
  log_weights: Optional[np.ndarray] = None

  def law(self, counts: Optional[np.ndarray] = None) -> Law:
    """The law, if episode e is counted counts[..., e] times."""
    if counts is None:
      counts = np.ones([len(self.mass)])
    summed = counts @ self.mass
    total = (summed if self.is_normalised else counts).sum(-1, keepdims=True)
    if not self.mass.any():
      total = np.zeros_like(total)
    return Law(self.grid, summed / np.where(total == 0, np.nan, total))

  @property
  def effective_size(self) -> Optional[float]:
    """Of as many equally weighted episodes the weights are worth."""
    if self.log_weights is None:
      return None
    weights = relative(self.log_weights)
    total = weights.sum()
    return float(total**2 / (weights**2).sum()) if total else 0.0


class Interval(NamedTuple):
  """A number and its 95 % interval, None where there is none."""

  point: float
  low: Optional[float] = None
  high: Optional[float] = None


def relative(log_weights: np.ndarray) -> np.ndarray:
  """[E] weights as shares of the largest; all 0 if all are."""
  largest = log_weights.max()
  if np.isneginf(largest):
    return np.zeros_like(log_weights)
  return np.exp(log_weights - largest)


def make_grid(
  low: float, high: float, episodes: int, thresholds: Sequence[float] = ()
) -> np.ndarray:
  """[K] increasing returns, a little beyond both ends.

  They are evenly spaced, but each threshold is a point with another just below
  it: returns at a threshold stay there, those below it stay below.

  Args:
    low: the lowest return.
    high: the highest.
    episodes: E, which limits K.
    thresholds: c of P(G < c).

  Returns:
    The grid.
  """
  margin = max(0.02 * (high - low), 1e-6, 1e-6 * abs(high), 1e-6 * abs(low))
  points = int(np.clip(_NUMBERS // episodes, _FEWEST_POINTS, _POINTS))
  grid = np.linspace(low - margin, high + margin, points)
  beside = _BESIDE * (grid[1] - grid[0])
  inside = np.unique([c for c in thresholds if grid[0] < c < grid[-1]])
  for c in inside:
    grid = grid[(grid <= c - 2 * beside) | (grid >= c + beside)]
  return np.unique(np.concatenate([grid, inside - beside, inside]))


def spread(
  rows: np.ndarray,
  values: np.ndarray,
  weights: np.ndarray,
  grid: np.ndarray,
  num_rows: int,
) -> np.ndarray:
  """Puts weighted returns on a grid; each keeps its mean (C51's projection).

  Args:
    rows: [M] which episode each return belongs to.
    values: [M] returns.
    weights: [M] signed weights.
    grid: [K].
    num_rows: E.

  Returns:
    [E, K] sums of weights.
  """
  left, share = places(values, grid)
  return put(rows * len(grid) + left, share, weights, [num_rows, len(grid)])


def places(
  values: np.ndarray, grid: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
  """[M] points of a grid left of returns, and shares of the points right."""
  left = np.searchsorted(grid, values, side="right") - 1
  left = np.clip(left, 0, len(grid) - 2)
  share = (values - grid[left]) / (grid[left + 1] - grid[left])
  return left, np.clip(share, 0, 1)


def put(
  flat: np.ndarray,
  share: np.ndarray,
  weights: np.ndarray,
  shape: Sequence[int],
) -> np.ndarray:
  """`spread`, of returns whose places are known.

  Args:
    flat: [M] row times K, and the point on the left.
    share: [M] of the point on the right.
    weights: [M] signed weights.
    shape: E and K.

  Returns:
    [E, K] sums of weights.
  """
  size = int(np.prod(shape))
  mass = np.bincount(flat, weights * (1 - share), size)
  mass += np.bincount(flat + 1, weights * share, size)
  return mass.reshape(shape)


def statistics(law: Law, thresholds: Sequence[float] = ()) -> Dict[str, Any]:
  """What a law says; the mean is that of the probabilities as they are.

  Args:
    law: one, or [...] of them.
    thresholds: c of P(G < c).

  Returns:
    Numbers, or [...], by name.
  """
  grid, proper = law.grid, law.proper().probabilities
  centre = (proper @ grid)[..., None]
  variance = (proper * (grid - centre) ** 2).sum(-1)
  found = {
    MEAN: law.probabilities @ grid,
    "deviation": np.sqrt(np.maximum(variance, 0)),
  }
  below = np.cumsum(proper, axis=-1)
  for level in LEVELS:
    place = (below < level - 1e-12).sum(-1)
    found[f"quantile_{level:g}"] = grid[np.minimum(place, len(grid) - 1)]
  lowest = np.clip(_SHARE - (below - proper), 0, proper)
  found[CVAR] = lowest @ grid / lowest.sum(-1)
  for threshold in thresholds:
    found[f"below_{threshold:g}"] = proper[..., grid < threshold].sum(-1)
  unknown = np.isnan(law.probabilities).any(-1)
  return {
    name: np.where(unknown, np.nan, value)[()] for name, value in found.items()
  }


def draws(episodes: int, repetitions: int, seed: int) -> np.ndarray:
  """[R, E] how often each episode is drawn, of a bootstrap."""
  generator = np.random.default_rng([seed, 3])
  even = np.full([episodes], 1 / episodes)
  return generator.multinomial(episodes, even, repetitions).astype(np.float64)


def intervals(
  estimate: Estimate, counts: np.ndarray, thresholds: Sequence[float] = ()
) -> Dict[str, Interval]:
  """Every statistic with its interval, by a bootstrap over episodes."""
  point = statistics(estimate.law(), thresholds)
  if len(estimate.mass) < 2:
    return {name: Interval(float(value)) for name, value in point.items()}
  again = statistics(estimate.law(counts), thresholds)
  tail = _tail(estimate)
  return {
    name: _interval(value, again[name], tail) for name, value in point.items()
  }


def difference(
  one: Estimate,
  other: Estimate,
  counts: Optional[np.ndarray],
  statistic: str,
) -> Interval:
  """A statistic of one estimate less that of another, on the same draws.

  Args:
    one: an estimate.
    other: another one, of the same episodes.
    counts: [R, E] of a bootstrap; there is no interval if None.
    statistic: its name.

  Returns:
    The difference.
  """
  check_statistic(statistic)
  point = statistics(one.law())[statistic] - statistics(other.law())[statistic]
  if counts is None or len(one.mass) < 2:
    return Interval(float(point))
  again = (
    statistics(one.law(counts))[statistic]
    - statistics(other.law(counts))[statistic]
  )
  return _interval(point, again, min(_tail(one), _tail(other)))


def check_statistic(name: str) -> None:
  """Raises unless a law has such a statistic."""
  known = statistics(Law(np.arange(2.0), np.array([0.5, 0.5])))
  if name not in known:
    raise errors.unknown_name("statistic", name, known)


def tail_of(episodes: float) -> float:
  """Which quantile of a bootstrap is the low end of a 95 % interval.

  Percentile intervals are too narrow for few episodes; Hesterberg's ("What
  Teachers Should Know about the Bootstrap", 2015) are as wide as Student's.

  Args:
    episodes: how many there are, or as how many their weights count.

  Returns:
    0.025 for many, less for few.
  """
  freedom = max(1, int(episodes) - 1)
  wide = student(freedom) * math.sqrt((freedom + 1) / freedom)
  return 0.5 * math.erfc(wide / math.sqrt(2))


def student(freedom: int) -> float:
  """The 97.5 % quantile of Student's distribution (Cornish and Fisher)."""
  if freedom <= len(_STUDENT):
    return _STUDENT[freedom - 1]
  z = 1.959964
  return float(
    z
    + (z**3 + z) / (4 * freedom)
    + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
  )


def _tail(estimate: Estimate) -> float:
  size = estimate.effective_size
  return tail_of(len(estimate.mass) if size is None else size)


def _interval(point: float, again: np.ndarray, tail: float) -> Interval:
  known = again[~np.isnan(again)]  # draws in which some episode has weight
  if np.isnan(point) or not len(known):
    return Interval(float(point))
  low, high = np.quantile(known, [tail, 1 - tail])
  return Interval(float(point), float(low), float(high))


def distances(law: Law, returns: np.ndarray) -> Tuple[float, float]:
  """W1 and the energy distance between a law and returns that were played."""
  values = np.concatenate([law.grid, returns])
  weights = np.concatenate(
    [law.proper().probabilities, np.full(len(returns), -1 / len(returns))]
  )
  return line_distances(values, weights)


def line_distances(
  values: np.ndarray, signed: np.ndarray
) -> Tuple[float, float]:
  """W1 and the energy distance of two laws, the second's weights negative."""
  order = np.argsort(values, kind="stable")
  apart = np.cumsum(signed[order])[:-1]
  gaps = np.diff(values[order])
  return float(np.abs(apart) @ gaps), float(2 * apart**2 @ gaps)
