"""The absolute value rounded off at 0: by quotients and as it is defined."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops.kernels import rounded_distance

# From where only the first term counts to where only the distance does.
_S = 10.0 ** np.linspace(-12, 30, 2000)


def _exactly(d2: float, h: float):
  """Value and derivative, with a series where the formula would cancel."""
  s = d2 / h
  if s < 1e-3:
    terms = [(-s) ** k / math.factorial(k) for k in range(8)]
    f = s * sum(t / ((k + 1) * (2 * k + 1)) for k, t in enumerate(terms))
    g = sum(t / (2 * k + 1) for k, t in enumerate(terms))
  else:
    g = math.sqrt(math.pi / s) * math.erf(math.sqrt(s)) / 2
    f = 2 * s * g + math.expm1(-s)
  return math.sqrt(h / math.pi) * f, g / math.sqrt(math.pi * h)


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("h", [1.0, 0.01, 16.0])
def test_seven_digits_by_quotients(h, jit_compile):
  compute = tf.function(
    lambda d2: rounded_distance.excess_and_slope(d2, h, for_float32=True),
    jit_compile=jit_compile,
  )
  d2 = _S * h
  excess, slope = compute(tf.constant(d2))
  wanted = np.array([_exactly(one, h) for one in d2]).T
  at_zero = math.sqrt(h / math.pi)
  np.testing.assert_allclose(
    excess.numpy() + at_zero, wanted[0] + at_zero, rtol=3e-8
  )
  np.testing.assert_allclose(slope, wanted[1], rtol=1e-7)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("for_float32", [False, True])
def test_at_zero(dtype, for_float32):
  value, slope = rounded_distance.excess_and_slope(
    tf.zeros([1], dtype), 1.0, for_float32=for_float32
  )
  np.testing.assert_array_equal(value, [0.0])
  np.testing.assert_allclose(slope, [1 / math.sqrt(math.pi)], rtol=1e-6)


def test_infinitely_far():
  far = tf.constant([np.inf], tf.float32)
  value, slope = rounded_distance.excess_and_slope(far, 1.0)
  np.testing.assert_array_equal(value, [np.inf])
  np.testing.assert_array_equal(slope, [0.0])


def test_float64_is_the_formula():
  found = rounded_distance.excess_and_slope(tf.constant(_S), 1.0)
  wanted = np.array([_exactly(one, 1.0) for one in _S]).T
  np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
  # Near 0 its two terms cancel, and about 1e-16 of them is left.
  np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-15)
