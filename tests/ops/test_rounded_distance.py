"""The absolute value rounded off at 0: quotients of polynomials in float32."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops.kernels import rounded_distance

# Beside 0: from where only the first term counts to where powers overflow, and
# closely about the end of the fit.
_S = np.float32(
  np.concatenate([10.0 ** np.linspace(-12, 30, 2000), 16 + np.linspace(-1, 1)])
)


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
def test_equals_the_formula(h, jit_compile):
  compute = tf.function(
    lambda d2: rounded_distance.excess_and_slope(d2, h), jit_compile=jit_compile
  )
  d2 = _S * np.float32(h)
  found = [part.numpy() for part in compute(tf.constant(d2))]
  wanted = np.array([_exactly(float(one), h) for one in d2]).T
  for part, exact in zip(found, wanted):
    np.testing.assert_allclose(part, exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_at_zero(dtype):
  value, slope = rounded_distance.excess_and_slope(tf.zeros([1], dtype), 1.0)
  np.testing.assert_array_equal(value, [0.0])
  np.testing.assert_allclose(slope, [1 / math.sqrt(math.pi)], rtol=1e-6)


def test_infinitely_far():
  far = tf.constant([np.inf], tf.float32)
  value, slope = rounded_distance.excess_and_slope(far, 1.0)
  np.testing.assert_array_equal(value, [np.inf])
  np.testing.assert_array_equal(slope, [0.0])


def test_float64_is_the_formula():
  d2 = np.float64(_S)
  found = rounded_distance.excess_and_slope(tf.constant(d2), 1.0)
  wanted = np.array([_exactly(float(one), 1.0) for one in d2]).T
  np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
  # Near 0 its two terms cancel, and about 1e-16 of them is left.
  np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-15)
