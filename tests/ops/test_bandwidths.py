import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import MMDLoss
from tf_mmdrl.ops import bandwidths, kernels, mmd


def _median(z):
  pairs = itertools.combinations(np.float64(z), 2)
  squared = sorted((a - b) ** 2 for a, b in pairs)
  return squared[(len(squared) - 1) // 2]


def _weighted_median(z, weights):
  """The least squared distance within which half of the pairs' weight lies."""
  indices = list(itertools.combinations(range(len(z)), 2))
  squared = np.float64([(np.float64(z[i]) - z[j]) ** 2 for i, j in indices])
  counts = np.float64([weights[i] * weights[j] for i, j in indices])
  for one in np.sort(squared):
    if counts[squared <= one].sum() >= counts.sum() / 2:
      return one
  raise AssertionError("no half of the weight")


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("num", [2, 3, 8, 41])
def test_median_is_that_of_all_pairs(num, jit_compile):
  z = np.random.default_rng(num).normal(size=[3, num]).astype(np.float32) * 7
  compute = tf.function(
    bandwidths.median_squared_distance, jit_compile=jit_compile
  )
  wanted = [_median(row) for row in z]
  np.testing.assert_allclose(compute(tf.constant(z)), wanted, rtol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("num", [2, 3, 8, 41])
def test_pairs_count_as_much_as_their_weights(num, jit_compile):
  rng = np.random.default_rng(num)
  z = rng.normal(size=[3, num]).astype(np.float32) * 7
  weights = rng.uniform(size=z.shape) ** 3
  weights[0, 0] = 0
  compute = tf.function(
    bandwidths.median_squared_distance, jit_compile=jit_compile
  )
  wanted = [_weighted_median(*row) for row in zip(z, weights)]
  got = compute(tf.constant(z), tf.constant(weights))
  if num == 2:
    wanted[0] = 0.0  # no pair has weight
  np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-12)


def test_median_rule_weighs_particles():
  """Half of x's weight on a particle far away, and y of another number."""
  x, y = np.float32([[0, 1, 2, 50]]), np.float32([[0.5, 1.5]])
  weights = np.float32([[0.1, 0.1, 0.1, 0.7]])
  predicted = ReturnDistribution(tf.constant(x), tf.math.log(weights))
  target = ReturnDistribution(tf.constant(y))
  z = np.concatenate([x[0], y[0]])
  h = 2 * _weighted_median(z, np.append(4 * weights[0], [1, 1]))
  assert h > 2 * 40**2 > 2 * _median(z)
  kernel = bandwidths.median()(predicted, target, 0)
  np.testing.assert_allclose(kernel.bandwidths, [[h]], rtol=1e-5)
  # The loss hands the weights over.
  loss = MMDLoss(bandwidths.median())(predicted, target, tf.constant(0))
  wanted = mmd.mmd_squared(
    x, y, kernel=kernels.gaussian(h), x_log_weights=np.log(weights)
  )
  np.testing.assert_allclose(loss, wanted, rtol=1e-5)


@pytest.mark.parametrize("num", [2, 5, 8])
def test_equal_weights_are_no_weights(num):
  z = np.random.default_rng(num).normal(size=[2, num]).astype(np.float32)
  plain = ReturnDistribution(tf.constant(z))
  logs = tf.fill(z.shape, np.float32(-np.log(num)))
  rule = bandwidths.median()
  for weighted in (plain._replace(log_weights=logs), plain):
    np.testing.assert_array_equal(
      rule(weighted, plain, 0).bandwidths, rule(plain, plain, 0).bandwidths
    )


def test_median_rule_scales_and_has_a_floor():
  x, y = (
    ReturnDistribution(tf.constant(part))
    for part in ([[0.0, 1.0], [2.0, 2.0]], [[3.0, 7.0], [2.0, 2.0]])
  )
  kernel = bandwidths.median(2.0, least=0.5)(x, y, 0)
  np.testing.assert_allclose(
    kernel.bandwidths, [[2 * _median([0, 1, 3, 7])], [0.5]], rtol=1e-6
  )


def test_no_gradient_flows_through_the_median():
  x, logs = tf.constant([[0.0, 1.0, 5.0]]), tf.zeros([1, 3])
  with tf.GradientTape() as tape:
    tape.watch((x, logs))
    predicted = ReturnDistribution(x, logs)
    h = bandwidths.median()(predicted, ReturnDistribution(x + 1), 0).bandwidths
  assert tape.gradient(h, (x, logs)) == (None, None)


@pytest.mark.parametrize("step, h", [(0, 10.0), (50, 10**0.5), (200, 1.0)])
def test_annealed_goes_geometrically(step, h):
  rule = bandwidths.annealed(10.0, 1.0, 100)
  particles = ReturnDistribution(tf.zeros([1, 2]))
  kernel = rule(particles, particles, tf.constant(step))
  np.testing.assert_allclose(kernel.bandwidths, [h], rtol=1e-6)


def test_fixed_is_the_kernel_itself():
  kernel = kernels.laplace(1.0)
  assert bandwidths.fixed(kernel)(None, None, 3) is kernel


@pytest.mark.parametrize(
  "make",
  [
    lambda: bandwidths.median(0.0),
    lambda: bandwidths.annealed(1.0, -1.0, 10),
    lambda: bandwidths.annealed(1.0, 1.0, 0),
  ],
)
def test_bad_input(make):
  with pytest.raises(errors.UserError, match="must be positive"):
    make()
