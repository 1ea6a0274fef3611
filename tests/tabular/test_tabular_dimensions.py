"""Theorem 3 in R^D."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.tabular import theory_dimensions


@pytest.mark.parametrize("seed", range(5))
def test_the_best_assignment_is_the_best_of_all(seed):
  costs = np.random.default_rng(seed).normal(size=[6, 6]) ** 2
  rows = np.arange(6)
  found = costs[rows, theory_dimensions.best_assignment(costs)].sum()
  every = itertools.permutations(range(6))
  assert found == pytest.approx(min(costs[rows, list(p)].sum() for p in every))


def test_wasserstein_on_the_line_pairs_sorted_points():
  rng = np.random.default_rng(1)
  x, y = rng.normal(size=[2, 20, 1])
  wanted = np.abs(np.sort(x[:, 0]) - np.sort(y[:, 0])).mean()
  assert theory_dimensions.wasserstein(x, y) == pytest.approx(wanted)


def test_mmd_to_the_normal_is_that_to_many_samples():
  rng = np.random.default_rng(2)
  x, y = rng.normal(size=[3, 2]), rng.normal(size=[4000, 2])

  def mean(a, b):
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / 2).mean()

  wanted = mean(x, x) - 2 * mean(x, y) + mean(y, y)
  found = theory_dimensions.mmd_squared(tf.constant(x))
  assert float(found) == pytest.approx(wanted, abs=5e-3)
  # i.i.d. samples have on average what the formula says.
  samples = rng.normal(size=[300, 4, 2])
  squares = [
    float(theory_dimensions.mmd_squared(tf.constant(s))) for s in samples
  ]
  assert np.sqrt(np.mean(squares)) == pytest.approx(
    theory_dimensions.iid_mmd(4, 2), rel=0.05
  )


def test_optimised_particles_beat_independent_ones():
  for n in (4, 16):
    found = theory_dimensions.optimised_mmd(n, 2)
    assert 0 < found < 0.7 * theory_dimensions.iid_mmd(n, 2)


@pytest.mark.slow
def test_the_bound_holds_in_every_dimension_and_both_rates_fall():
  """Slopes of optimised particles stay below the bound; they are not equal."""
  claims = theory_dimensions.dimensions().claims
  print(*claims, sep="\n")
  assert all(claim.holds for claim in claims)
  count = len(theory_dimensions.DIMENSIONS)
  optimised, transport = claims[:count], claims[count:]
  assert all(claim.measured < claim.bound == -0.5 for claim in optimised)
  for slopes in (optimised, transport):
    found = [claim.measured for claim in slopes]
    assert found == sorted(found)  # nearer to 0, which is slower
