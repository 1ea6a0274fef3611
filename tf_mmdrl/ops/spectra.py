"""Spectra of kernels: k(d) = sum_f a_f cos(f d) + a constant, a_f >= 0.

The frequencies are the odd multiples of half a step D = 2 pi / P, so that the
sum changes its sign with d -> d + P. It is to be the kernel at distances up to
the particles' range, and need not be beyond.
"""

import abc
import functools
import math
from typing import NamedTuple, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernels

# Frequencies of which the number is a multiple.
BLOCK = 64

# -log of the error allowed to the period and to the cut-off.
_DIGITS = {tf.float32: 18.0, tf.float64: 37.0}


class Grid(NamedTuple):
  """Even frequencies.

  Attributes:
    period: [B, 1] or [1, 1] float64, P.
    num_blocks: [] float64, blocks of frequencies that resolve the kernel over
      the data's range; infinite where none do.
  """

  period: tf.Tensor
  num_blocks: tf.Tensor


class Spectrum(abc.ABC):
  """Where a kernel's frequencies are, and how much of each there is."""

  @abc.abstractmethod
  def grid(self, span: tf.Tensor) -> Grid:
    """The coarsest grid that is exact to the particles' dtype.

    Args:
      span: [B, 1] float64, the distance of the farthest particles.
    """

  @abc.abstractmethod
  def density(
    self, halves: tf.Tensor, step: tf.Tensor, grid: Grid
  ) -> tf.Tensor:
    """The a_f.

    Args:
      halves: [2, Q, R] int32, the frequencies in half steps; odd.
      step: [B, 1, 1] or [1, 1, 1], D.
      grid: that of `grid`.

    Returns:
      [B, 2, Q, R] or [1, 2, Q, R].
    """


class Gaussians(Spectrum):
  """Of Gaussians and their tails.

  A Gaussian is the characteristic function of a Gaussian,

    exp(-d^2/h) = int w_h(f) cos(f d) df,
    w_h(f) = sqrt(h / 4 pi) exp(-h f^2 / 4)

  The integrand is smooth and decays like a Gaussian, so the midpoint rule on an
  even grid converges exponentially: it turns k(d) into its copy of period P,
  whose error at distances up to the particles' range is
  exp(-(P - range)^2 / h). Both errors (period, cut-off) are held below the
  float's own.

  A tail, -E|d + N(0, h / 2)|, has the density exp(-h f^2 / 4) / (pi f^2), for
  -|d| = int (cos(f d) - 1) / (pi f^2) df. The midpoint rule leaves out f = 0,
  and turns |d| into a triangle wave that is |d| itself up to a constant
  wherever |d| < P. So the same grid serves it, with the same error.
  """

  def __init__(self, kernel: kernels.GaussianMixture, dtype: tf.DType):
    """Takes bandwidths that are numbers, or a tensor [K] or [B, K]."""
    bandwidths = kernel.bandwidths
    if not tf.is_tensor(bandwidths):  # TensorFlow would take them as float32
      bandwidths = tf.constant(bandwidths, dtype)
    bandwidths = tf.cast(bandwidths, dtype)
    self._bandwidths = tf.reshape(bandwidths, [-1, bandwidths.shape[-1]])
    self._coefficients = tf.constant(kernel.coefficients, dtype)
    self._tails = None
    if any(kernel.tails):
      self._tails = tf.constant(kernel.tails, dtype)

  def grid(self, span: tf.Tensor) -> Grid:
    """See the base class."""
    digits = _DIGITS[self._bandwidths.dtype]
    bandwidths = tf.cast(self._bandwidths, tf.float64)
    widest = tf.reduce_max(bandwidths, axis=1, keepdims=True)
    narrowest = tf.reduce_min(bandwidths, axis=1, keepdims=True)
    period = span + tf.sqrt(digits * widest)
    cutoff = tf.sqrt(4 * digits / narrowest)
    num_frequencies = tf.reduce_max(cutoff * period) / (2 * math.pi)
    num_blocks = tf.math.ceil(num_frequencies / BLOCK)
    is_finite = tf.math.is_finite(num_blocks)
    return Grid(period, tf.where(is_finite, num_blocks, math.inf))

  def density(
    self, halves: tf.Tensor, step: tf.Tensor, grid: Grid
  ) -> tf.Tensor:
    """See the base class."""
    step = step[:, tf.newaxis]
    squares = tf.square(step / 2 * tf.cast(halves, step.dtype))[:, tf.newaxis]
    bandwidths = self._bandwidths[:, :, tf.newaxis, tf.newaxis, tf.newaxis]
    coefficients = tf.reshape(self._coefficients, [-1, 1, 1, 1])
    scale = tf.sqrt(bandwidths / math.pi) * coefficients
    if self._tails is not None:
      tails = tf.reshape(self._tails, [-1, 1, 1, 1])
      scale += tails * (2 / math.pi) / squares
    exponentials = tf.exp(squares * (bandwidths / -4))
    return step * tf.reduce_sum(scale * exponentials, axis=1)


class Multiquadric(Spectrum):
  """Of -sqrt(1 + d^2 / h), in float32.

  Its density, K_1(sqrt(h) f) / f up to a factor, has a logarithm at f = 0, so
  the midpoint rule is slow to converge: the kernel differs from a tail,
  which that rule does well, by 1 / 2d far away. But only distances up to the
  range matter. Cut off smoothly beyond them, the difference has a period of its
  own, and its coefficients are those of a discrete Fourier transform. There is
  one row of a table for each number of blocks, made when it is first wanted,
  with distances in sqrt(h).
  """

  _CUTOFF = 16.0  # where the coefficients have fallen to 1e-9
  _EDGE = 6.0  # the distance over which the difference is cut off
  _MOST_BLOCKS = 16

  def __init__(self, kernel: kernels.Multiquadric):
    """Takes the kernel."""
    self._root = math.sqrt(kernel.h)

  def grid(self, span: tf.Tensor) -> Grid:
    """See the base class; one period serves all examples."""
    longest = tf.reduce_max(span) / self._root + self._EDGE
    num_blocks = tf.math.ceil(2 * longest / self._period(1))
    fits = num_blocks <= self._MOST_BLOCKS  # false for what is not finite
    period = tf.reshape(self._root * self._period(1) * num_blocks, [1, 1])
    return Grid(period, tf.where(fits, num_blocks, math.inf))

  def density(
    self, halves: tf.Tensor, step: tf.Tensor, grid: Grid
  ) -> tf.Tensor:
    """See the base class."""
    del step
    row = tf.cast(grid.num_blocks, tf.int32) - 1
    table = tf.constant(self._table(), tf.float32)
    return tf.gather(tf.gather(table, row), halves // 2)[tf.newaxis]

  @classmethod
  def _period(cls, num_blocks: int) -> float:
    """P that needs this many blocks to the cut-off, in sqrt(h)."""
    return num_blocks * BLOCK * 2 * math.pi / cls._CUTOFF

  @classmethod
  @functools.cache
  def _table(cls) -> np.ndarray:
    """[blocks, frequencies] coefficients; 0 beyond a row's own blocks."""
    most = cls._MOST_BLOCKS * BLOCK
    rows = [cls._row(num) for num in range(1, cls._MOST_BLOCKS + 1)]
    return np.stack([np.pad(row, (0, most - len(row))) for row in rows])

  @classmethod
  def _row(cls, num_blocks: int) -> np.ndarray:
    """The coefficients of that many blocks."""
    period, count = cls._period(num_blocks), 4 * BLOCK * num_blocks
    distances = np.arange(count) * (period / 2 / count)
    tail, density = _unit_tail(distances, period, BLOCK * num_blocks)
    # 1 up to the range, 0 at half a period: less than 2e-9 off at both.
    middle, width = period / 2 - cls._EDGE / 2, cls._EDGE / 8.4
    window = _erf((middle - distances) / width) / 2 + 0.5
    difference = window * (tail - np.sqrt(1 + distances**2))
    # Even about 0 and odd about half a period: two periods in all.
    half = np.concatenate([difference, [0.0], -difference[:0:-1]])
    transform = np.fft.rfft(np.concatenate([half, -half])).real
    found = density + transform[1::2][: len(density)] / (2 * count)
    return np.maximum(found, 0.0)


_erf = np.vectorize(math.erf)


def _unit_tail(
  distances: np.ndarray, period: float, num_frequencies: int
) -> Tuple[np.ndarray, np.ndarray]:
  """E|d + N(0, 1 / 2)| at distances, and the spectrum of its negative."""
  rounded = np.exp(-(distances**2)) / math.sqrt(math.pi)
  step = 2 * math.pi / period
  squares = ((np.arange(num_frequencies) + 0.5) * step) ** 2
  density = step * (2 / math.pi) / squares * np.exp(-squares / 4)
  return distances * _erf(distances) + rounded, density
