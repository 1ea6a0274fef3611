"""Theorem 3 in R^D: its bound does not depend on the dimension.

The target is the standard normal in R^D. Its mean embedding by a Gaussian
kernel is known, so the MMD of n particles to it is exact. The paper's remark
compares with the 1-Wasserstein distance, whose rate for samples is n^(-1/D); it
is measured between two samples of n points, by the best assignment.
"""

import functools
import math
from typing import Callable, Dict, List, Tuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tf_mmdrl.tabular import claims
from tf_mmdrl.tabular.theory_convergence import slope

DIMENSIONS = (1, 2, 5, 10)
SIZES = (4, 8, 16, 32, 64)
_REPEATS = 60  # pairs of samples of each size


def mmd_squared(x: tf.Tensor) -> tf.Tensor:
  """[] squared MMD of particles x [n, D] to the standard normal.

  The kernel is exp(-|x - y|^2 / D): distances grow as sqrt(D), and so does its
  width.

  Args:
    x: float64 particles.

  Returns:
    The discrepancy, exactly.
  """
  dimension = float(x.shape[1])
  h = dimension
  d2 = tf.reduce_sum((x[:, None] - x[None]) ** 2, axis=-1)
  potential = (h / (h + 2)) ** (dimension / 2) * tf.exp(
    -tf.reduce_sum(x**2, axis=-1) / (h + 2)
  )
  energy = (h / (h + 4)) ** (dimension / 2)
  own = tf.reduce_mean(tf.exp(-d2 / h))
  return own - 2 * tf.reduce_mean(potential) + energy


def iid_mmd(n: int, dimension: int) -> float:
  """The root mean square MMD of n i.i.d. samples, exactly."""
  energy = (dimension / (dimension + 4)) ** (dimension / 2)
  return math.sqrt((1 - energy) / n)


def optimised_mmd(n: int, dimension: int) -> float:
  """The MMD of n particles that L-BFGS moved from i.i.d. ones."""
  start = np.random.default_rng(n).normal(size=[n * dimension])
  return math.sqrt(max(float(_search(dimension)(start)), 1e-32))


@functools.cache
def _search(dimension: int) -> Callable[[np.ndarray], tf.Tensor]:
  """[n D] particles -> the least squared MMD found; traced once for all n."""

  def value(x):
    return mmd_squared(tf.reshape(x, [-1, dimension]))

  @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)])
  def search(start):
    return tfp.optimizer.lbfgs_minimize(
      lambda x: tfp.math.value_and_gradient(value, x),
      initial_position=start,
      tolerance=1e-9,
      max_iterations=200,
    ).objective_value

  return search


def wasserstein(x: np.ndarray, y: np.ndarray) -> float:
  """The 1-Wasserstein distance of two samples [n, D] of equal size."""
  costs = np.linalg.norm(x[:, None] - y[None], axis=-1)
  return float(costs[np.arange(len(x)), best_assignment(costs)].mean())


def best_assignment(costs: np.ndarray) -> np.ndarray:
  """[n] the column of each row of a matrix [n, n], for the least sum.

  By shortest augmenting paths (Jonker and Volgenant, 1987): rows come one by
  one, and prices keep all reduced costs at 0 or above.

  Args:
    costs: the cost of each pair.

  Returns:
    Columns.
  """
  n = len(costs)
  row_price, column_price = np.zeros(n), np.zeros(n + 1)
  row_of = np.full(n + 1, -1)  # of each column; the last column is the start
  for row in range(n):
    row_of[n] = row
    column, least = n, np.full(n, np.inf)
    came_from = np.full(n, n)
    done = np.zeros(n + 1, bool)
    while row_of[column] >= 0:
      done[column] = True
      current = row_of[column]
      reduced = costs[current] - row_price[current] - column_price[:n]
      better = ~done[:n] & (reduced < least)
      least[better], came_from[better] = reduced[better], column
      open_costs = np.where(done[:n], np.inf, least)
      following = int(np.argmin(open_costs))
      step = open_costs[following]
      row_price[row_of[done]] += step
      column_price[done] -= step
      least[~done[:n]] -= step
      column = following
    while column != n:  # back along the path
      row_of[column] = row_of[came_from[column]]
      column = came_from[column]
  found = np.empty(n, int)
  found[row_of[:n]] = np.arange(n)
  return found


def dimensions() -> claims.Result:
  """Slopes of both errors for each dimension."""
  sizes, rng = np.array(SIZES), np.random.default_rng(0)
  rows: List[claims.Claim] = []
  panels: Dict[str, claims.Curves] = {"Theorem 3, MMD": {}, "W1 of samples": {}}
  transport: List[float] = []
  for dimension in DIMENSIONS:
    errors = np.array([optimised_mmd(n, dimension) for n in SIZES])
    fitted = slope(sizes, errors)
    rows.append(
      claims.Claim(
        "Theorem 3 in R^D: error ~ n^slope",
        f"optimised, D = {dimension}, standard normal; n = 4 ... 64",
        fitted,
        -0.5,
        fitted < -0.5
        and all(e <= iid_mmd(n, dimension) for n, e in zip(SIZES, errors)),
      )
    )
    apart = np.array([_mean_wasserstein(rng, n, dimension) for n in SIZES])
    transport.append(slope(sizes, apart))
    panels["Theorem 3, MMD"][f"D = {dimension}, slope {fitted:.2f}"] = (
      sizes,
      errors,
    )
    panels["W1 of samples"][f"D = {dimension}, slope {transport[-1]:.2f}"] = (
      sizes,
      apart,
    )
  rows.extend(_transport_claims(transport))
  return claims.Result(rows, panels)


def _transport_claims(slopes: List[float]) -> List[claims.Claim]:
  before: Tuple[float, ...] = (-math.inf, *slopes)
  return [
    claims.Claim(
      "Remark on Theorem 3: 1-Wasserstein slows down with D",
      f"two samples, D = {dimension}; n = 4 ... 64",
      fitted,
      -1 / max(dimension, 2),
      fitted > previous,
    )
    for dimension, fitted, previous in zip(DIMENSIONS, slopes, before)
  ]


def _mean_wasserstein(
  rng: np.random.Generator, n: int, dimension: int
) -> float:
  samples = rng.normal(size=[_REPEATS, 2, n, dimension])
  return float(np.mean([wasserstein(x, y) for x, y in samples]))
