"""Phases as whole numbers, and their sines.

A cycle is 2^32 steps of an int32 (2^64 of an int64, for float64). Whole numbers
wrap around as phases do, so that sums and multiples of phases are exact without
float64; the one rounding is that of the first phase, to 2^-32 of a cycle, where
a float32 has 2^-24 of its own size.
"""

import math
from typing import Callable

import numpy as np
import tensorflow as tf

# Phases -> their sines.
Sine = Callable[[tf.Tensor], tf.Tensor]

_INTEGERS = {tf.float32: tf.int32, tf.float64: tf.int64}
_FLOATS = {integer: dtype for dtype, integer in _INTEGERS.items()}
# sin(t pi / 2) = t p(t^2) for t in [-1, 1]; p is exact to 1e-10.
_SERIES = (
  np.polynomial.Chebyshev.interpolate(
    lambda w: np.sin(np.sqrt(w) * np.pi / 2) / np.sqrt(w), 5, domain=[0, 1]
  )
  .convert(kind=np.polynomial.Polynomial)
  .coef
)


def of_cycles(cycles: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Phases for sines of this dtype.

  Args:
    cycles: float64 in [-1/4, 1/4].
    dtype: tf.float32 or tf.float64.

  Returns:
    int32 or int64.
  """
  integer = _INTEGERS[dtype]
  return tf.cast(tf.round(cycles * 2.0 ** (8 * integer.size)), integer)


def cosines_and_sines(
  phases: tf.Tensor, multiples: tf.Tensor, sine: Sine
) -> tf.Tensor:
  """The cosines, then the sines, of multiples of phases.

  Args:
    phases: [B, L].
    multiples: [T] int32.
    sine: how to compute sines; cosines are those a quarter of a cycle on.

  Returns:
    [B, 2T, L].
  """
  multiples = tf.cast(multiples, phases.dtype)[:, tf.newaxis]
  quarters = tf.fill(tf.shape(multiples), _quarter(phases))
  shifts = tf.concat([quarters, tf.zeros_like(multiples)], axis=0)
  multiples = tf.concat([multiples, multiples], axis=0)
  return sine(phases[:, tf.newaxis] * multiples + shifts)


def library_sine(phases: tf.Tensor) -> tf.Tensor:
  """TensorFlow's own function: fast as a single op, slow under XLA."""
  radians = math.pi / 2 / float(_quarter(phases))
  return tf.sin(tf.cast(phases, _FLOATS[phases.dtype]) * radians)


def series_sine(phases: tf.Tensor) -> tf.Tensor:
  """A polynomial, for XLA to fuse into a few instructions; for float32."""
  if phases.dtype != tf.int32:
    return library_sine(phases)
  quarter = _quarter(phases)
  # sin(pi - x) = sin(x), which brings phases to a quarter of a cycle or less.
  is_far = phases + quarter < 0
  near = tf.where(is_far, phases.dtype.min - phases, phases)
  t = tf.cast(near, tf.float32) * (1 / quarter)
  squared = t * t
  sine = tf.fill(tf.shape(t), tf.constant(_SERIES[-1], tf.float32))
  for coefficient in _SERIES[-2::-1]:
    sine = sine * squared + tf.constant(coefficient, tf.float32)
  return sine * t


def _quarter(phases: tf.Tensor) -> int:
  """The phase of a quarter of a cycle."""
  return 2 ** (8 * phases.dtype.size - 2)
