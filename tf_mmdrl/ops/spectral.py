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

The grid factors. Frequencies come in blocks, f = (2 R q +- (r + 1/2)) D, and
e^(i f z) = e^(i 2 R q D z) e^(+-i (r + 1/2) D z): Q + R complex numbers for a
particle give 2 Q R frequencies, and the sums over particles are matrix
products. All these numbers are powers of e^(i D z / 2), one sine and one cosine
in float64 (squaring doubles an error, so float32 would not do). The number of
blocks follows from the range of the data, so the answer is right for any range;
only the cost grows.
"""

import math
from typing import NamedTuple, Tuple

import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy

_LOG_Q = 3  # Q = 8 multiples of the coarse frequency in a block
_LOG_R = 3  # R = 8 multiples of the fine frequency
_Q, _R = 2**_LOG_Q, 2**_LOG_R
_STRIDE = 2 * _R  # fine steps in a coarse one
_BLOCK = _Q * _STRIDE  # frequencies from one block to the next

# -log of the error allowed to the period and to the cut-off.
_DIGITS = {tf.float32: 18.0, tf.float64: 37.0}

# A complex number e^(i a) as a (real, imaginary) pair.
_Turn = Tuple[tf.Tensor, tf.Tensor]


class Grid(NamedTuple):
  """An even frequency grid, and every particle's turns on it.

  Attributes:
    step: [B, 1, 1] the step D between frequencies.
    num_blocks: [] float64, blocks of frequencies that resolve the kernel over
      the data's range; infinite where the data are not finite.
    turns: a pair of [B, J, L], turns by D z / 2, D z, 2 D z, 4 D z, ...
    block_turn: a pair of [B, 1, L] float64, the turn from block to block.
  """

  step: tf.Tensor
  num_blocks: tf.Tensor
  turns: _Turn
  block_turn: _Turn


def grid(z: tf.Tensor, bandwidths: tf.Tensor) -> Grid:
  """The coarsest grid that is exact to the particles' dtype.

  Args:
    z: [B, L] particles.
    bandwidths: [1, K] or [B, K].

  Returns:
    The grid.
  """
  dtype, digits = z.dtype, _DIGITS[z.dtype]
  z, bandwidths = tf.cast(z, tf.float64), tf.cast(bandwidths, tf.float64)
  low = tf.reduce_min(z, axis=1, keepdims=True)
  high = tf.reduce_max(z, axis=1, keepdims=True)
  widest = tf.reduce_max(bandwidths, axis=1, keepdims=True)
  narrowest = tf.reduce_min(bandwidths, axis=1, keepdims=True)
  period = high - low + tf.sqrt(digits * widest)
  cutoff = tf.sqrt(4 * digits / narrowest)
  step = 2 * math.pi / period
  num_blocks = tf.math.ceil(tf.reduce_max(cutoff / step) / _BLOCK)
  angle = (z - (low + high) / 2) * step / 4  # within +- pi / 4
  sine, cosine = tf.sin(angle), tf.cos(angle)
  turn = (1 - 2 * sine * sine)[:, None], (2 * sine * cosine)[:, None]
  turns = [turn]
  for _ in range(_LOG_Q + _LOG_R + 1):
    turns.append(_compose(turns[-1], turns[-1]))
  return Grid(
    step=tf.cast(step, dtype)[:, :, tf.newaxis],
    num_blocks=tf.where(tf.math.is_finite(num_blocks), num_blocks, math.inf),
    turns=tuple(tf.cast(tf.concat(part, 1), dtype) for part in zip(*turns)),
    block_turn=_compose(turns[-1], turns[-1]),
  )


def discrepancy(
  signed_weights: tf.Tensor,
  bandwidths: tf.Tensor,
  coefficients: tf.Tensor,
  frequency_grid: Grid,
  *,
  with_weights: bool,
) -> Discrepancy:
  """MMD^2 with its derivatives, in one pass over the frequencies.

  Args:
    signed_weights: [B, L], summing to 0. The sums lose least where positive
      and negative weights alternate.
    bandwidths: [1, K] or [B, K].
    coefficients: [K].
    frequency_grid: from `grid`.
    with_weights: whether the derivatives of the weights are wanted.

  Returns:
    The discrepancy; exact to the dtype of the weights.
  """
  dtype = signed_weights.dtype
  weights = signed_weights[:, tf.newaxis]
  step = frequency_grid.step
  fine, coarse = _tables(frequency_grid.turns)
  fine_rows = tf.concat(fine, axis=1)  # [B, 2R, L]

  def add_block(block, turn, value, d_particles, d_weights):
    turn_here = tf.cast(turn[0], dtype), tf.cast(turn[1], dtype)
    coarse_rows = tf.concat(_compose(coarse, turn_here), axis=1)  # [B, 2Q, L]
    sums = tf.matmul(coarse_rows * weights, fine_rows, transpose_b=True)
    plus, minus = _frequencies(tf.cast(block * _BLOCK, dtype))
    power, gradient, potential = _block(
      sums, plus * step, minus * step, step, bandwidths, coefficients
    )
    value += power
    d_particles += _contract(gradient, coarse_rows, fine_rows)
    if with_weights:
      d_weights += _contract(potential, coarse_rows, fine_rows)
    turn = _compose(turn, frequency_grid.block_turn)
    return block + 1, turn, value, d_particles, d_weights

  one = tf.ones_like(frequency_grid.block_turn[0])
  zeros = tf.zeros_like(signed_weights)
  last = tf.cast(frequency_grid.num_blocks, tf.int32)
  _, _, value, d_particles, d_weights = tf.while_loop(
    lambda block, *_: block < last,
    add_block,
    (0, (one, tf.zeros_like(one)), zeros[:, 0], zeros, zeros),
  )
  return Discrepancy(
    value, signed_weights * d_particles, d_weights if with_weights else None
  )


def _compose(a: _Turn, b: _Turn) -> _Turn:
  """e^(i (a + b))."""
  return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _tables(turns: _Turn) -> Tuple[_Turn, _Turn]:
  """Turns by (r + 1/2) D z, [B, R, L], and by 2 R q D z, [B, Q, L]."""
  bits = [
    tuple(part[:, j : j + 1] for part in turns)
    for j in range(turns[0].shape[1])
  ]
  one = tf.ones_like(bits[0][0])
  fine = _table(bits[0], bits[1 : 1 + _LOG_R])
  coarse = _table((one, tf.zeros_like(one)), bits[-_LOG_Q:])
  return fine, coarse


def _table(start: _Turn, bits) -> _Turn:
  """start + k a for k = 0, 1, ... from the turns a, 2a, 4a, ...; [B, T, L]."""
  table = start
  for turn in bits:
    pairs = zip(table, _compose(table, turn))
    table = tuple(tf.concat(pair, axis=1) for pair in pairs)
  return table


def _frequencies(first: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """A block's 2 R q + (r + 1/2) and 2 R q - (r + 1/2), each [1, Q, R]."""
  coarse = first + _STRIDE * tf.range(_Q, dtype=first.dtype)[None, :, None]
  fine = tf.range(_R, dtype=first.dtype) + 0.5
  return coarse + fine, coarse - fine


def _density(frequency, step, bandwidths, coefficients) -> tf.Tensor:
  """The kernel's spectral weight of a frequency and its negative, [B, Q, R]."""
  bandwidths = bandwidths[:, :, tf.newaxis, tf.newaxis]
  scale = coefficients[:, tf.newaxis, tf.newaxis] * tf.sqrt(
    bandwidths / (4 * math.pi)
  )
  squared = tf.square(frequency)[:, tf.newaxis]
  return (
    2 * step * tf.reduce_sum(scale * tf.exp(squared * bandwidths / -4), axis=1)
  )


def _block(sums, plus, minus, step, bandwidths, coefficients):
  """A block's part of MMD^2, and the matrices that give its derivatives.

  Args:
    sums: [B, 2Q, 2R] sums over the particles of coarse (cosine, sine) times
      fine (cosine, sine).
    plus: [B, Q, R] frequencies f = coarse + fine.
    minus: [B, Q, R] frequencies f = coarse - fine.
    step: [B, 1, 1] grid step.
    bandwidths: [1, K] or [B, K].
    coefficients: [K].

  Returns:
    [B] values, and [B, 2Q, 2R] matrices of the gradient and of the potential.
  """
  cc, cs = sums[:, :_Q, :_R], sums[:, :_Q, _R:]
  sc, ss = sums[:, _Q:, :_R], sums[:, _Q:, _R:]
  weight_plus = _density(plus, step, bandwidths, coefficients)
  weight_minus = _density(minus, step, bandwidths, coefficients)
  # At q = 0 of the first block f- = -f+, which the density has counted.
  weight_minus *= tf.cast(minus > 0, minus.dtype)
  cos_plus, sin_plus = cc - ss, sc + cs
  cos_minus, sin_minus = cc + ss, sc - cs
  power = tf.reduce_sum(
    weight_plus * (cos_plus**2 + sin_plus**2)
    + weight_minus * (cos_minus**2 + sin_minus**2),
    axis=(1, 2),
  )
  cos_plus, sin_plus = 2 * weight_plus * cos_plus, 2 * weight_plus * sin_plus
  cos_minus *= 2 * weight_minus
  sin_minus *= 2 * weight_minus
  potential = _matrix(cos_plus, sin_plus, cos_minus, sin_minus)
  # d cos(f z) / dz = -f sin(f z), d sin(f z) / dz = f cos(f z).
  gradient = _matrix(
    plus * sin_plus, -plus * cos_plus, minus * sin_minus, -minus * cos_minus
  )
  return power, gradient, potential


def _matrix(cos_plus, sin_plus, cos_minus, sin_minus) -> tf.Tensor:
  """M with sum_f a_f cos(f z) + b_f sin(f z) = coarse(z)^T M fine(z)."""
  cosine = tf.concat([cos_plus + cos_minus, sin_plus - sin_minus], axis=2)
  sine = tf.concat([sin_plus + sin_minus, cos_minus - cos_plus], axis=2)
  return tf.concat([cosine, sine], axis=1)


def _contract(matrix, coarse, fine) -> tf.Tensor:
  """coarse(z)^T M fine(z) for each particle, [B, L]."""
  return tf.reduce_sum(tf.matmul(matrix, coarse, transpose_a=True) * fine, 1)
