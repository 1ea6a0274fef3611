"""E|d + noise| with noise ~ N(0, h / 2), the absolute value rounded off at 0.

With s = d^2 / h it is sqrt(h / pi) (1 + f(s)), and its derivative in d^2 is
g(s) / sqrt(pi h), where

  g(s) = sqrt(pi / s) erf(sqrt(s)) / 2,   f(s) = 2 s g(s) + exp(-s) - 1.

erf and exp for each pair of particles would be most of what a loss of vectors
costs. In float32 two quotients of polynomials with one denominator take their
place, a third of the work, as erf is computed itself. All coefficients are
positive, so that nothing cancels: the relative error is below 4e-7 for any s.
"""

import math
from typing import Sequence, Tuple

import tensorflow as tf

_ROOT_PI = math.sqrt(math.pi)
# From here on erf is 1 and exp is 0 in float32.
_FAR = 16.0
# Minimax fits of g and f / s on [0, 16], from the constant term upwards, by
# iteratively reweighted least squares in float64: relative error 2.9e-8.
_SLOPE = (
  1.0000000264239548,
  0.19052003312196358,
  0.05074980039966091,
  0.0043892536085614366,
  0.00033978396352954675,
  7.955182009196703e-06,
  3.934928848544178e-08,
)
_EXCESS = (
  0.9999999706991407,
  0.3571876540927283,
  0.07138945859160042,
  0.008219673247555946,
  0.0005660426102536461,
  1.62487553296263e-05,
  6.465223538792843e-08,
)
_BELOW = (
  1.0,
  0.523853625760068,
  0.12536765723134086,
  0.017601190252196888,
  0.0015156015809421827,
  6.839398141647526e-05,
  8.691146224674745e-07,
)


def excess_and_slope(d2: tf.Tensor, h: float) -> Tuple[tf.Tensor, tf.Tensor]:
  """E|d + noise| less its value at 0, and its derivative in d^2.

  Args:
    d2: squared distances, of any shape; float32 or float64.
    h: the bandwidth; the noise's variance is h / 2.

  Returns:
    Two tensors of the shape of `d2`.
  """
  s = d2 / h
  f, g = _by_quotients(s) if d2.dtype == tf.float32 else _by_functions(s)
  return math.sqrt(h / math.pi) * f, g / math.sqrt(math.pi * h)


def _by_quotients(s: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """f and g in float32."""
  near, root = s < _FAR, tf.sqrt(s)
  z = tf.minimum(s, _FAR)  # powers of what is far would overflow
  inverse = 1 / tf.where(near, _polynomial(_BELOW, z), root)
  f = tf.where(near, z * _polynomial(_EXCESS, z) * inverse, _ROOT_PI * root - 1)
  g = tf.where(near, _polynomial(_SLOPE, z), _ROOT_PI / 2) * inverse
  return f, g


def _polynomial(coefficients: Sequence[float], s: tf.Tensor) -> tf.Tensor:
  """sum_k c_k s^k, by Horner's rule."""
  value = tf.fill(tf.shape(s), tf.constant(coefficients[-1], s.dtype))
  for coefficient in coefficients[-2::-1]:
    value = value * s + coefficient
  return value


def _by_functions(s: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """f and g as they are defined."""
  root = tf.sqrt(s)
  erf = tf.math.erf(root)
  f = _ROOT_PI * root * erf + tf.math.expm1(-s)
  is_zero = root < 1e-8  # where g is 1 up to s / 3
  safe = tf.where(is_zero, tf.ones_like(root), root)
  g = tf.where(is_zero, tf.ones_like(root), _ROOT_PI / 2 * erf / safe)
  return f, g
