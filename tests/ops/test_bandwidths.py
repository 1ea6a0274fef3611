import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import bandwidths, kernels


def _median(z):
  pairs = itertools.combinations(np.float64(z), 2)
  squared = sorted((a - b) ** 2 for a, b in pairs)
  return squared[(len(squared) - 1) // 2]


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("num", [2, 3, 8, 41])
def test_median_is_that_of_all_pairs(num, jit_compile):
  z = np.random.default_rng(num).normal(size=[3, num]).astype(np.float32) * 7
  compute = tf.function(
    bandwidths.median_squared_distance, jit_compile=jit_compile
  )
  wanted = [_median(row) for row in z]
  np.testing.assert_allclose(compute(tf.constant(z)), wanted, rtol=1e-5)


def test_median_rule_scales_and_has_a_floor():
  x, y = np.float32([[0, 1], [2, 2]]), np.float32([[3, 7], [2, 2]])
  kernel = bandwidths.median(2.0, least=0.5)(x, y, 0)
  np.testing.assert_allclose(
    kernel.bandwidths, [[2 * _median([0, 1, 3, 7])], [0.5]], rtol=1e-6
  )


def test_no_gradient_flows_through_the_median():
  x = tf.constant([[0.0, 1.0, 5.0]])
  with tf.GradientTape() as tape:
    tape.watch(x)
    h = bandwidths.median()(x, x + 1, 0).bandwidths
  assert tape.gradient(h, x) is None


@pytest.mark.parametrize("step, h", [(0, 10.0), (50, 10**0.5), (200, 1.0)])
def test_annealed_goes_geometrically(step, h):
  rule = bandwidths.annealed(10.0, 1.0, 100)
  kernel = rule(tf.zeros([1, 2]), tf.zeros([1, 2]), tf.constant(step))
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
