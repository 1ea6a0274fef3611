"""The squared MMD of Gaussian kernels in the frequency domain, O(N).

A Gaussian is the characteristic function of a Gaussian:

  exp(-d^2/h) = int w_h(f) cos(f d) df,  w_h(f) = sqrt(h / 4 pi) exp(-h f^2 / 4)

so that, with signed weights s (positive for x, negative for y) on the joint
particles z,

  MMD^2 = sum_ij s_i s_j k(z_i - z_j) = int w(f) |sum_j s_j e^(i f z_j)|^2 df.

It is a sum of squares: never negative, and free of the cancellation that the
three-term formula suffers near convergence. The integrand is smooth and decays
like a Gaussian, so the midpoint rule on an even grid converges exponentially:
step D = 2 pi / P turns k(d) into its P-periodic copy, whose error at distances
up to the particles' range is exp(-(P - range)^2 / h). Both errors (period,
cut-off) are held below the float's own.

A tail, -E|d + N(0, h / 2)|, has the density exp(-h f^2 / 4) / (pi f^2), for
-|d| = int (cos(f d) - 1) / (pi f^2) df; the constant meets weights that sum to
0.
The midpoint rule leaves out f = 0, and turns |d| into a triangle wave that is
|d| itself up to a constant wherever |d| < P. So the same grid serves it, with
the same error.

The grid factors. Frequencies come in blocks, f = (2 R q +- (r + 1/2)) D, and
e^(i f z) = e^(i 2 R q D z) e^(+-i (r + 1/2) D z): Q + R sines and cosines for a
particle give 2 Q R frequencies, and the sums over particles are matrix
products. Phases are taken to a cycle in float64, where they are still exact.
The number of blocks follows from the range of the data, so the answer is right
for any range; only the cost grows.
"""

import math
from typing import Callable, NamedTuple, Optional, Tuple

import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy

_Q = 4  # multiples of the coarse frequency in a block
_R = 8  # multiples of the fine frequency
_STRIDE = 2 * _R  # fine steps in a coarse one
_BLOCK = _Q * _STRIDE  # frequencies from one block to the next

# -log of the error allowed to the period and to the cut-off.
_DIGITS = {tf.float32: 18.0, tf.float64: 37.0}


class Sizes(NamedTuple):
  """How much of each bandwidth's parts there is.

  Attributes:
    gaussians: [K] coefficients of exp(-d^2 / h).
    tails: [K] coefficients of -E|d + N(0, h / 2)|, or None for none.
  """

  gaussians: tf.Tensor
  tails: Optional[tf.Tensor] = None


# Cycles in [-1/2, 1/2] -> (cosine, sine) of 2 pi cycles.
CosSin = Callable[[tf.Tensor], Tuple[tf.Tensor, tf.Tensor]]


class Grid(NamedTuple):
  """An even frequency grid and the particles on it.

  Attributes:
    step: [B, 1, 1] the step D between frequencies.
    cycles: [B, 1, L] float64, D z / 2 pi, in [-1/2, 1/2].
    num_blocks: [] float64, blocks of frequencies that resolve the kernel over
      the data's range; infinite where the data are not finite.
  """

  step: tf.Tensor
  cycles: tf.Tensor
  num_blocks: tf.Tensor


def grid(z: tf.Tensor, bandwidths: tf.Tensor) -> Grid:
  """The coarsest grid that is exact to the particles' dtype.

  Args:
    z: [B, L] particles.
    bandwidths: [1, K] or [B, K].

  Returns:
    The grid.
  """
  dtype, digits = z.dtype, _DIGITS[z.dtype]
  z = tf.cast(z, tf.float64)[:, tf.newaxis]
  bandwidths = tf.cast(bandwidths, tf.float64)[:, tf.newaxis]
  low = tf.reduce_min(z, axis=2, keepdims=True)
  high = tf.reduce_max(z, axis=2, keepdims=True)
  widest = tf.reduce_max(bandwidths, axis=2, keepdims=True)
  narrowest = tf.reduce_min(bandwidths, axis=2, keepdims=True)
  period = high - low + tf.sqrt(digits * widest)
  cutoff = tf.sqrt(4 * digits / narrowest)
  num_frequencies = tf.reduce_max(cutoff * period) / (2 * math.pi)
  # A block reaches R short of the next one, whose f- fill the gap.
  num_blocks = tf.math.ceil((num_frequencies + _R) / _BLOCK)
  return Grid(
    step=tf.cast(2 * math.pi / period, dtype),
    cycles=(z - (low + high) / 2) / period,
    num_blocks=tf.where(tf.math.is_finite(num_blocks), num_blocks, math.inf),
  )


def library_cos_sin(cycles: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """TensorFlow's own functions: fast as single ops, slow under XLA."""
  angle = 2 * math.pi * cycles
  return tf.cos(angle), tf.sin(angle)


def series_cos_sin(cycles: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """Taylor series of the half angle, for XLA to fuse into a few instructions.

  Exact to float32: the half angle is at most pi / 2, and the first terms left
  out are (pi / 2)^15 / 15! and (pi / 2)^16 / 16!, below 1e-9.

  Args:
    cycles: in [-1/2, 1/2].

  Returns:
    The cosine and the sine of 2 pi cycles.
  """
  if cycles.dtype == tf.float64:
    return library_cos_sin(cycles)
  angle = math.pi * cycles
  squared = angle * angle
  sine = tf.zeros_like(angle)
  cosine = tf.zeros_like(angle)
  for n in range(7, -1, -1):
    cosine = cosine * squared + (-1) ** n / math.factorial(2 * n)
    if n < 7:
      sine = sine * squared + (-1) ** n / math.factorial(2 * n + 1)
  sine *= angle
  return 1 - 2 * sine * sine, 2 * sine * cosine


def discrepancy(
  signed_weights: tf.Tensor,
  bandwidths: tf.Tensor,
  sizes: Sizes,
  frequency_grid: Grid,
  *,
  with_weights: bool,
  cos_sin: CosSin = library_cos_sin,
) -> Discrepancy:
  """MMD^2 with its derivatives, in one pass over the frequencies.

  Args:
    signed_weights: [B, L], summing to 0. The sums lose least where positive
      and negative weights alternate.
    bandwidths: [1, K] or [B, K].
    sizes: of the parts of each bandwidth.
    frequency_grid: from `grid`.
    with_weights: whether the derivatives of the weights are wanted.
    cos_sin: how to compute cosines and sines.

  Returns:
    The discrepancy; exact to the dtype of the weights.
  """
  step, dtype = frequency_grid.step, signed_weights.dtype
  fine_multiples = tf.range(_R, dtype=tf.float64) + 0.5
  coarse_multiples = _STRIDE * tf.range(_Q, dtype=tf.float64)

  def rows(multiples):  # cosines, then sines: [B, 2T, L]
    cycles = frequency_grid.cycles * multiples[:, tf.newaxis]
    cycles = tf.cast(cycles - tf.round(cycles), dtype)
    return tf.concat(cos_sin(cycles), axis=1)

  fine = rows(fine_multiples)
  weighted = fine * signed_weights[:, tf.newaxis]

  def add_block(block, value, d_particles, d_weights):
    first = tf.cast(block * _BLOCK, tf.float64)
    coarse = rows(first + coarse_multiples)
    sums = tf.matmul(coarse, weighted, transpose_b=True)
    middle = tf.cast(first + coarse_multiples, dtype)[:, tf.newaxis]
    aside = tf.cast(fine_multiples, dtype)
    frequencies = step[:, tf.newaxis] * tf.stack(
      [middle + aside, middle - aside]
    )
    density = _density(frequencies, step, bandwidths, sizes)
    power, cosines, sines = _spectrum(sums, density)
    value += power
    # d cos(f z) / dz = -f sin(f z), d sin(f z) / dz = f cos(f z).
    slopes = _matrix(frequencies * sines, -frequencies * cosines)
    d_particles += _contract(slopes, coarse, weighted)
    if with_weights:
      d_weights += _contract(_matrix(cosines, sines), coarse, fine)
    return block + 1, value, d_particles, d_weights

  zeros = tf.zeros_like(signed_weights)
  last = tf.cast(frequency_grid.num_blocks, tf.int32)
  _, value, d_particles, d_weights = tf.while_loop(
    lambda block, *_: block < last,
    add_block,
    (0, zeros[:, 0], zeros, zeros),
  )
  return Discrepancy(value, d_particles, d_weights if with_weights else None)


def _density(frequencies, step, bandwidths, sizes: Sizes) -> tf.Tensor:
  """The spectral weight of each frequency and its negative, [B, 2, Q, R]."""
  bandwidths = bandwidths[:, :, tf.newaxis, tf.newaxis, tf.newaxis]
  squares = tf.square(frequencies)[:, tf.newaxis]
  scale = tf.sqrt(bandwidths / math.pi) * tf.reshape(
    sizes.gaussians, [-1, 1, 1, 1]
  )
  if sizes.tails is not None:
    tails = tf.reshape(sizes.tails, [-1, 1, 1, 1])
    scale += tails * (2 / math.pi) / squares
  exponents = squares * (bandwidths / -4)
  density = tf.reduce_sum(scale * tf.exp(exponents), axis=1)
  # In the first block f- at q = 0 is -f+, which counts already.
  counted = tf.cast(frequencies > 0, density.dtype)
  return density * counted * step[:, tf.newaxis]


def _spectrum(sums, density) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """A block's part of MMD^2, and its derivatives in each Fourier sum.

  Args:
    sums: [B, 2Q, 2R] sums over the particles of coarse (cosine, sine) times
      fine (cosine, sine).
    density: [B, 2, Q, R] weights of the frequencies f+ and f-.

  Returns:
    [B] values, and the [B, 2, Q, R] derivatives in the cosine sums and in the
    sine sums of f+ and f-.
  """
  (cc, cs), (sc, ss) = (
    tf.split(half, 2, axis=2) for half in tf.split(sums, 2, axis=1)
  )
  cosines = tf.stack([cc - ss, cc + ss], axis=1)
  sines = tf.stack([sc + cs, sc - cs], axis=1)
  d_cosines, d_sines = 2 * density * cosines, 2 * density * sines
  power = tf.reduce_sum(d_cosines * cosines + d_sines * sines, [1, 2, 3]) / 2
  return power, d_cosines, d_sines


def _matrix(cosines, sines) -> tf.Tensor:
  """M with sum_f a_f cos(f z) + b_f sin(f z) = coarse(z)^T M fine(z).

  Args:
    cosines: [B, 2, Q, R] coefficients a of f+ and f-.
    sines: [B, 2, Q, R] coefficients b of f+ and f-.

  Returns:
    [B, 2Q, 2R].
  """
  a_plus, a_minus = tf.unstack(cosines, axis=1)
  b_plus, b_minus = tf.unstack(sines, axis=1)
  top = tf.concat([a_plus + a_minus, b_plus - b_minus], axis=2)
  bottom = tf.concat([b_plus + b_minus, a_minus - a_plus], axis=2)
  return tf.concat([top, bottom], axis=1)


def _contract(matrix, coarse, fine) -> tf.Tensor:
  """coarse(z)^T M fine(z) for each particle, [B, L]."""
  return tf.reduce_sum(tf.matmul(matrix, coarse, transpose_a=True) * fine, 1)
