"""95 % intervals by rliable's stratified bootstrap: seeds within each game."""

import contextlib
from typing import Any, Callable, Iterator, NamedTuple, Optional

import numpy as np

from tf_mmdrl.core import optional
from tf_mmdrl.report import score_statistics

REPETITIONS = 2_000
_SEED = 0  # the same runs give the same report


class Estimate(NamedTuple):
  """A statistic and its interval; both bounds are None with a single seed.

  Attributes:
    point: [...] the statistic.
    low: [...] where the interval begins.
    high: [...] where it ends.
  """

  point: np.ndarray
  low: Optional[np.ndarray] = None
  high: Optional[np.ndarray] = None

  def mapped(self, grow: Callable[[np.ndarray], np.ndarray]) -> "Estimate":
    """This estimate in another unit, by a function that is linear and grows."""
    if self.low is None or self.high is None:
      return Estimate(grow(self.point))
    return Estimate(grow(self.point), grow(self.low), grow(self.high))

  def percent(self) -> "Estimate":
    """This estimate of shares, in per cent."""
    return self.mapped(lambda share: 100 * share)


def require_rliable() -> Any:
  """rliable's library, or an error that says how to get it."""
  return optional.require("rliable.library", use="reports", extra="report")


def estimate(
  statistic: Callable[[np.ndarray], np.ndarray],
  matrix: np.ndarray,
  *,
  repetitions: int = REPETITIONS,
) -> Estimate:
  """A statistic with its interval.

  Args:
    statistic: from scores [S, G, ...] to a number or an array.
    matrix: [S, G, ...] scores; each game's seeds are drawn anew, by itself.
    repetitions: the repetitions of the bootstrap.

  Returns:
    The estimate; with one seed it has no interval, because one seed does not
    show how seeds differ.
  """
  point = np.asarray(statistic(matrix))
  if len(matrix) < 2 or not matrix.size:
    return Estimate(point)
  with _seeded():
    _, bounds = require_rliable().get_interval_estimates(
      {"": matrix},
      lambda drawn: np.atleast_1d(statistic(drawn)),
      reps=repetitions,
    )
  low, high = (bound.reshape(point.shape) for bound in bounds[""])
  return Estimate(point, low, high)


def estimate_of_two(
  statistic: Callable[[np.ndarray, np.ndarray], np.ndarray],
  x: np.ndarray,
  y: np.ndarray,
) -> Estimate:
  """A number that compares two agents, with its interval.

  Args:
    statistic: from scores [S, G] and [T, G] to a number.
    x: [S, G] scores of one agent.
    y: [T, G] scores of the other; seeds are drawn by themselves.

  Returns:
    The estimate; it has no interval if either agent has one seed only.
  """
  point = np.asarray(statistic(x, y))
  if min(len(x), len(y)) < 2:
    return Estimate(point)
  with _seeded():
    _, bounds = require_rliable().get_interval_estimates(
      {"": (x, y)},
      lambda *drawn: np.atleast_1d(statistic(*drawn)),
      reps=REPETITIONS,
    )
  low, high = (bound.reshape(()) for bound in bounds[""])
  return Estimate(point, low, high)


def profile(matrix: np.ndarray, thresholds: np.ndarray) -> Estimate:
  """A performance profile with its interval.

  Args:
    matrix: [S, G] scores.
    thresholds: [F].

  Returns:
    The share of scores above each threshold, [F].
  """
  return estimate(
    lambda drawn: score_statistics.profile(drawn, thresholds), matrix
  )


@contextlib.contextmanager
def _seeded() -> Iterator[None]:
  """rliable draws from NumPy's global generator, whatever seed it is given."""
  before = np.random.get_state()
  np.random.seed(_SEED)
  try:
    yield
  finally:
    np.random.set_state(before)
