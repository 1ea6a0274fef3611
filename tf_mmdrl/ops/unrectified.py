"""The squared MMD of unrectified kernels by pairs.

With signed weights s (positive for x, negative for y) on the joint particles z,
and g_i = sum_j s_j sign(z_i - z_j) |z_i - z_j|^(alpha - 1),

  MMD^2 = -sum_ij s_i s_j |z_i - z_j|^alpha = -2 sum_i s_i z_i g_i,

because the terms of a pair are (z_i - z_j) times something that changes its
sign with i and j. So value and gradient need one sum over pairs, of the slope
alone, and g goes to 0 with the discrepancy. Terms are float32 and sums float64:
what is left of rounding is that of single terms, 1e-7 of each, and it averages
out to about 1e-10 of the range to the power of alpha for 200 particles. The
energy distance (alpha = 1) counts: with uniform weights its g is exact.
"""

import math

import tensorflow as tf

from tf_mmdrl.ops import kernels, turns
from tf_mmdrl.ops.discrepancy import Discrepancy

# Up to this many particles all examples are computed at once.
_FEW = 128
# Pairs that are in memory at a time beyond that; they fit a core's own cache.
_CHUNK = 2**18


def discrepancy(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  alpha: float,
  with_weights: bool,
  uniform: bool,
) -> Discrepancy:
  """MMD^2 for k(x, y) = -|x - y|^alpha, with its derivatives.

  Args:
    x: [B, N] particles.
    y: [B, M] particles.
    x_weights: [B, N] or [1, N] float64, summing to 1.
    y_weights: [B, M] or [1, M] float64, summing to 1.
    alpha: the order, from 1 to 1.5.
    with_weights: whether the derivatives of x_weights are wanted.
    uniform: whether all weights of x are 1 / N, and all of y are 1 / M.

  Returns:
    The discrepancy, not negative, in the dtype of x.
  """
  dtype, (num_x, num_y) = x.dtype, (x.shape[1], y.shape[1])
  z = turns.joined(x, y)
  signed = turns.joined(x_weights, -y_weights)
  scale = math.lcm(num_x, num_y)
  if alpha == 1 and uniform and scale < 2**24:
    # Uniform weights times this are whole, and their sums exact in float32.
    used = tf.cast(tf.round(signed * scale), tf.float32)
  else:
    used, scale = signed, 1
  used = tf.broadcast_to(used, tf.shape(z))
  balance = tf.cast(_balances(z, used, alpha), tf.float64) / scale
  # About the middle, for precision: the value does not depend on it.
  exact = tf.cast(z, tf.float64)
  exact -= tf.reduce_mean(exact, axis=1, keepdims=True)
  value = -2 * tf.reduce_sum(signed * exact * balance, axis=1)
  d_particles = -2 * alpha * x_weights * turns.first(balance, num_x)
  d_weights = None
  if with_weights:
    moment = _balances(z, signed * exact, alpha)
    potential = exact * balance - moment
    d_weights = tf.cast(-2 * turns.first(potential, num_x), dtype)
  return Discrepancy(
    tf.cast(tf.nn.relu(value), dtype), tf.cast(d_particles, dtype), d_weights
  )


def _balances(z: tf.Tensor, weights: tf.Tensor, alpha: float) -> tf.Tensor:
  """sum_j w_j sign(z_i - z_j) |z_i - z_j|^(alpha - 1), [B, L]."""

  def of_rows(rows, z, weights):  # [..., R], [..., L], [..., L] -> [..., R]
    pulls = _pulls(rows[..., tf.newaxis], z[..., tf.newaxis, :], alpha)
    return tf.linalg.matvec(tf.cast(pulls, weights.dtype), weights)

  length = z.shape[1]
  if length <= _FEW:
    return of_rows(z, z, weights)
  num_rows = min(length, max(1, _CHUNK // length))
  num_chunks = -(-length // num_rows)
  rows = tf.pad(z, [[0, 0], [0, num_chunks * num_rows - length]])
  rows = tf.reshape(rows, [-1, num_chunks, num_rows])

  def of_example(parts):
    rows, z, weights = parts
    if num_chunks == 1:
      return of_rows(rows[0], z, weights)
    found = tf.map_fn(
      lambda chunk: of_rows(chunk, z, weights),
      rows,
      fn_output_signature=weights.dtype,
      parallel_iterations=1,
    )
    return tf.reshape(found, [-1])[:length]

  return tf.map_fn(
    of_example,
    (rows, z, weights),
    fn_output_signature=weights.dtype,
    parallel_iterations=1,
  )


def _pulls(a: tf.Tensor, b: tf.Tensor, alpha: float) -> tf.Tensor:
  """sign(a - b) |a - b|^(alpha - 1)."""
  if alpha == 1:  # comparisons, unlike differences, are exact
    return tf.cast(a > b, tf.float32) - tf.cast(a < b, tf.float32)
  distance = a - b
  return tf.sign(distance) * kernels.power(tf.abs(distance), alpha - 1)
