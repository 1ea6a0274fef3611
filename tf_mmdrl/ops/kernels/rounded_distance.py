"""E|d + noise| with noise ~ N(0, h / 2), the absolute value rounded off at 0.

With s = d^2 / h it is sqrt(h / pi) (1 + f(s)), and its derivative in d^2 is
g(s) / sqrt(pi h), where

  g(s) = sqrt(pi / s) erf(sqrt(s)) / 2,   f(s) = 2 s g(s) + exp(-s) - 1.

erf and exp for each pair of particles would be most of what a loss of vectors
costs. For results in float32 roots of two quotients of polynomials take their
place, which a float64 has as fast:

  1 + f(s) = sqrt(p(s) / q(s)),   g(s) = sqrt(r(s) / t(s)).

Both squares, 1 / g^2 and (1 + f)^2, are lines for large s, so that one quotient
serves all s. What is left are smooth errors of 1e-7, and smooth errors cancel
as the kernel's terms do where distributions nearly coincide. All coefficients
are positive, so that no rounding is added.
"""

import math
from typing import Sequence, Tuple

import tensorflow as tf

_ROOT_PI = math.sqrt(math.pi)
# Minimax fits on [0, infinity), from the constant term upwards, by iteratively
# reweighted least squares. Relative error of 1 + f: 1.3e-8; of g: 6.8e-8.
_P = (
  1.0000000247740137,
  2.817898871938136,
  2.61219164846938,
  0.9701450774474718,
  0.22664320295061902,
  0.036274165980100845,
  0.003962441305379597,
  0.00039918576260152515,
)
_Q = (
  1.0,
  0.8179000340966563,
  0.30971844332124443,
  0.07211094663034785,
  0.0115469543166531,
  0.001261280998381853,
  0.00012706477780920612,
)
_R = (
  1.0,
  0.3202544358876114,
  0.09405472991864908,
  0.016667973948780775,
  0.002224099668061355,
  0.00021493347375579167,
  2.2213700046550858e-05,
)
_T = (
  1.0000001357375852,
  0.986916794128986,
  0.4409104678491861,
  0.11781286176538093,
  0.021281235152565196,
  0.0028309621154353906,
  0.00027366632812258774,
  2.8283357492622138e-05,
)


def excess_and_slope(
  d2: tf.Tensor, h: float, *, for_float32: bool = False
) -> Tuple[tf.Tensor, tf.Tensor]:
  """E|d + noise| less its value at 0, and its derivative in d^2.

  Args:
    d2: squared distances, of any shape; float32 or float64.
    h: the bandwidth; the noise's variance is h / 2.
    for_float32: whether seven digits are enough; for float64 below 1e43.

  Returns:
    Two tensors of the shape of `d2`.
  """
  s = d2 / h
  f, g = _by_quotients(s) if for_float32 else _by_functions(s)
  return math.sqrt(h / math.pi) * f, g / math.sqrt(math.pi * h)


def _by_quotients(s: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """f and g, which share nothing, so that XLA has nothing to keep for both."""
  f = tf.sqrt(_polynomial(_P, s) / _polynomial(_Q, s)) - math.sqrt(_P[0])
  g = tf.sqrt(_polynomial(_R, s) / _polynomial(_T, s))
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
