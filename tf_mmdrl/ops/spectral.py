"""The squared MMD in the frequency domain, O(N).

With a kernel k(d) = sum_f a_f cos(f d) (see `spectra`), and signed weights s
(positive for x, negative for y) on the joint particles z,

  MMD^2 = sum_ij s_i s_j k(z_i - z_j) = sum_f a_f |sum_j s_j e^(i f z_j)|^2.

It is a sum of squares: never negative, and free of the cancellation that the
three-term formula suffers near convergence. A constant in k meets weights that
sum to 0.

The grid factors. Frequencies come in blocks, f = ((2 q + 1) R +- (r + 1/2)) D,
and e^(i f z) = e^(i (2 q + 1) R D z) e^(+-i (r + 1/2) D z): Q + R sines and
cosines for a particle give 2 Q R frequencies, and the sums over particles are
matrix products. All phases are whole multiples of one, D z / 2, and exact as
whole numbers (see `phases`). The number of blocks follows from the range of the
data, so the answer is right for any range; only the cost grows.
"""

import math
from typing import NamedTuple, Tuple

import tensorflow as tf

from tf_mmdrl.ops import phases, spectra
from tf_mmdrl.ops.discrepancy import Discrepancy

_Q = 4  # coarse frequencies in a block
_R = spectra.BLOCK // (2 * _Q)  # fine ones, to either side of a coarse one
# In half steps, of which each frequency has an odd number.
_FINE = tuple(range(1, 2 * _R, 2))
_COARSE = tuple(2 * _R * odd for odd in range(1, 2 * _Q, 2))


class Places(NamedTuple):
  """Particles on a frequency grid.

  Attributes:
    grid: the grid.
    step: [B, 1, 1] or [1, 1, 1] the step D between frequencies.
    phases: [B, L] whole numbers, the phases D z / 2.
  """

  grid: spectra.Grid
  step: tf.Tensor
  phases: tf.Tensor


def place(z: tf.Tensor, spectrum: spectra.Spectrum) -> Places:
  """Puts particles on the grid that their range asks for.

  Args:
    z: [B, L] particles.
    spectrum: the kernel's.

  Returns:
    The places.
  """
  low, high = (
    tf.cast(end(z, axis=1, keepdims=True), tf.float64)
    for end in (tf.reduce_min, tf.reduce_max)
  )
  grid = spectrum.grid(high - low)
  middle = (low + high) / 2
  half_cycles = (tf.cast(z, tf.float64) - middle) * (0.5 / grid.period)
  return Places(
    grid,
    tf.cast(2 * math.pi / grid.period, z.dtype)[:, tf.newaxis],
    phases.of_cycles(half_cycles, z.dtype),
  )


def discrepancy(
  signed_weights: tf.Tensor,
  spectrum: spectra.Spectrum,
  places: Places,
  *,
  with_weights: bool,
  sine: phases.Sine = phases.library_sine,
) -> Discrepancy:
  """MMD^2 with its derivatives, in one pass over the frequencies.

  Args:
    signed_weights: [B, L] or [1, L], summing to 0. The sums lose least where
      positive and negative weights alternate.
    spectrum: the kernel's.
    places: from `place`.
    with_weights: whether the derivatives of the weights are wanted.
    sine: how to compute sines.

  Returns:
    The discrepancy; exact to the dtype of the weights.
  """
  dtype = signed_weights.dtype
  aside = tf.constant(_FINE)

  def rows(multiples):  # [B, 2T, L]
    return phases.cosines_and_sines(places.phases, multiples, sine)

  fine = rows(aside)
  weighted = fine * signed_weights[:, tf.newaxis]

  def add_block(block, value, d_particles, d_weights):
    middle = tf.constant(_COARSE) + block * (2 * spectra.BLOCK)
    coarse = rows(middle)
    sums = tf.matmul(coarse, weighted, transpose_b=True)
    middle = middle[:, tf.newaxis]
    halves = tf.stack([middle + aside, middle - aside])
    density = spectrum.density(halves, places.step, places.grid)
    power, cosines, sines = _spectrum(sums, density)
    value += power
    frequencies = (places.step / 2)[:, tf.newaxis] * tf.cast(halves, dtype)
    # d cos(f z) / dz = -f sin(f z), d sin(f z) / dz = f cos(f z).
    slopes = _matrix(frequencies * sines, -frequencies * cosines)
    d_particles += _contract(slopes, coarse, weighted)
    if with_weights:
      d_weights += _contract(_matrix(cosines, sines), coarse, fine)
    return block + 1, value, d_particles, d_weights

  zeros = tf.zeros(tf.shape(places.phases), dtype)
  last = tf.cast(places.grid.num_blocks, tf.int32)
  _, value, d_particles, d_weights = tf.while_loop(
    lambda block, *_: block < last,
    add_block,
    (0, zeros[:, 0], zeros, zeros),
  )
  return Discrepancy(value, d_particles, d_weights if with_weights else None)


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
  return tf.reduce_sum(tf.matmul(matrix, fine) * coarse, axis=1)
