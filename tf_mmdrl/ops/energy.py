"""The squared MMD of the unrectified kernel of order 1.

With k(x, y) = -|x - y| the squared MMD is the energy distance, and on the line
that is the Cramer distance: MMD^2 = 2 int (F - G)^2 for the distribution
functions F and G. One sort gives F - G, in O(N log N); there is no
cancellation.

Few particles are compared pair by pair instead (see `unrectified`), which takes
less time than sorting them.
"""

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
