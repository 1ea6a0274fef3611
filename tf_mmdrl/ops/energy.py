"""The squared MMD of the unrectified kernel of order 1.

With k(x, y) = -|x - y| the squared MMD is the energy distance, and on the line
that is the Cramer distance: MMD^2 = 2 int (F - G)^2 for the distribution
functions F and G. One sort gives F - G, in O(N log N); there is no
cancellation.

Few particles are counted pair by pair instead, which takes less time than
sorting them. With signed weights s (positive for x, negative for y) on the
joint particles z, and g_i = sum_j s_j sign(z_i - z_j), twice F - G,

  MMD^2 = -sum_ij s_i s_j |z_i - z_j| = -2 sum_i s_i z_i g_i,

where g goes to 0 with the discrepancy, so that nothing cancels here either.
"""

import math

import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy


def discrepancy(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  with_weights: bool,
) -> Discrepancy:
  """MMD^2 for k(x, y) = -|x - y|, with its derivatives.

  Args:
    x: [B, N] particles.
    y: [B, M] particles.
    x_weights: [B, N] or [1, N] float64, summing to 1.
    y_weights: [B, M] or [1, M] float64, summing to 1.
    with_weights: whether the derivatives of x_weights are wanted.

  Returns:
    The discrepancy.
  """
  dtype = x.dtype
  joint = tf.concat([x, y], axis=1)
  signed = tf.concat([x_weights, -y_weights], axis=1)
  signed = tf.broadcast_to(signed, tf.shape(joint))
  order = tf.argsort(joint, axis=1)
  joint = tf.gather(joint, order, axis=1, batch_dims=1)
  signed = tf.gather(signed, order, axis=1, batch_dims=1)
  z = tf.cast(joint, tf.float64)
  difference = _from_zero(tf.cumsum(signed, axis=1))  # F - G, [B, N + M + 1]
  gaps = z[:, 1:] - z[:, :-1]
  value = 2 * tf.reduce_sum(difference[:, 1:-1] ** 2 * gaps, axis=1)
  # Both sides, so that equal particles get equal, symmetric derivatives.
  left = tf.searchsorted(joint, x, side="left")
  right = tf.searchsorted(joint, x, side="right")
  below = tf.gather(difference, left, axis=1, batch_dims=1)
  above = -tf.gather(difference, right, axis=1, batch_dims=1)
  d_particles = -2 * x_weights * (below - above)
  d_weights = None
  if with_weights:
    moment = _from_zero(tf.cumsum(signed * z, axis=1))
    moment_below = tf.gather(moment, left, axis=1, batch_dims=1)
    moment_above = moment[:, -1:] - tf.gather(
      moment, right, axis=1, batch_dims=1
    )
    distance = tf.cast(x, tf.float64) * (below - above) - (
      moment_below - moment_above
    )
    d_weights = tf.cast(-2 * distance, dtype)
  return Discrepancy(
    tf.cast(value, dtype), tf.cast(d_particles, dtype), d_weights
  )


def _from_zero(sums: tf.Tensor) -> tf.Tensor:
  return tf.pad(sums, [[0, 0], [1, 0]])


def discrepancy_by_pairs(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  with_weights: bool,
  uniform: bool,
) -> Discrepancy:
  """What `discrepancy` gives, in O(N^2); for few particles, or for XLA.

  Args:
    x: see `discrepancy`, as the next four.
    y: [B, M].
    x_weights: [B, N] or [1, N].
    y_weights: [B, M] or [1, M].
    with_weights: whether the derivatives of x_weights are wanted.
    uniform: whether all weights of x are 1 / N, and all of y are 1 / M.

  Returns:
    The discrepancy.
  """
  dtype, num_x, num_y = x.dtype, x.shape[1], y.shape[1]
  z = tf.concat([x, y], axis=1)
  signed = tf.concat([x_weights, -y_weights], axis=1)
  # Sums over axis 1, which XLA vectorises, and no matrix product: XLA then
  # forms no tensor of [B, L, L]. Comparisons, unlike differences, are exact.
  first, second = z[:, :, tf.newaxis], z[:, tf.newaxis]
  scale = math.lcm(num_x, num_y)
  if uniform and scale < 2**24:
    # Uniform weights times this are whole, and their sums exact in float32.
    whole = tf.cast(tf.round(signed * scale), tf.float32)
  else:
    whole, scale = signed, 1

  def balance_of(weights):  # sum_j w_j sign(z_i - z_j)
    zero = tf.zeros([], weights.dtype)
    weights = weights[:, :, tf.newaxis]
    below = tf.where(first < second, weights, zero)
    above = tf.where(first > second, weights, zero)
    return tf.cast(tf.reduce_sum(below - above, axis=1), tf.float64)

  balance = balance_of(whole) / scale
  # About the middle, for precision: the value does not depend on it.
  z = tf.cast(z, tf.float64)
  z -= tf.reduce_mean(z, axis=1, keepdims=True)
  value = -2 * tf.reduce_sum(signed * z * balance, axis=1)
  d_particles = -2 * x_weights * balance[:, :num_x]
  d_weights = None
  if with_weights:
    moment = balance_of(signed * z)
    d_weights = tf.cast(-2 * (z * balance - moment)[:, :num_x], dtype)
  return Discrepancy(
    tf.cast(tf.nn.relu(value), dtype), tf.cast(d_particles, dtype), d_weights
  )
