"""The squared MMD of the Laplace kernel exp(-|d| / h), O(N log N).

With signed weights s (positive for x, negative for y) on the joint particles z,
sorted, sums over the particles up to each one follow from the one before:

  P_i = sum_(j <= i) s_j e^(-(z_i - z_j) / h)
      = s_i + e^(-(z_i - z_(i-1)) / h) P_(i-1)

and those from each one on likewise, from the other end. No exponent is
positive, so nothing overflows. All P_i together take log2(L) steps: each step
doubles how many particles a sum has seen.
"""

from typing import Tuple

import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy


def discrepancy(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  h: float,
) -> Discrepancy:
  """MMD^2 for k(x, y) = exp(-|x - y| / h), with its derivatives.

  Args:
    x: [B, N] particles.
    y: [B, M] particles.
    x_weights: [B, N] or [1, N] float64, summing to 1.
    y_weights: [B, M] or [1, M] float64, summing to 1.
    h: the bandwidth.

  Returns:
    The discrepancy.
  """
  dtype, num_x = x.dtype, x.shape[1]
  joint = tf.concat([x, y], axis=1)
  signed = tf.concat([x_weights, -y_weights], axis=1)
  signed = tf.broadcast_to(signed, tf.shape(joint))
  order = tf.argsort(joint, axis=1)
  z = tf.cast(tf.gather(joint, order, axis=1, batch_dims=1), tf.float64)
  signed = tf.gather(signed, order, axis=1, batch_dims=1)
  before, below = _sums_before(z / h, signed)
  after, above = (
    tf.reverse(sums, [1])
    for sums in _sums_before(tf.reverse(z / -h, [1]), tf.reverse(signed, [1]))
  )
  potential = before + signed + after
  value = tf.nn.relu(tf.reduce_sum(signed * potential, axis=1))
  own = _inverse(order)[:, :num_x]
  force = tf.gather(above - below, own, axis=1, batch_dims=1)
  potential = tf.gather(potential, own, axis=1, batch_dims=1)
  return Discrepancy(
    tf.cast(value, dtype),
    tf.cast(2 / h * x_weights * force, dtype),
    tf.cast(2 * potential, dtype),
  )


def _sums_before(
  z: tf.Tensor, signed: tf.Tensor
) -> Tuple[tf.Tensor, tf.Tensor]:
  """Sums of s_j e^(-(z_i - z_j)) over the particles before each one.

  Args:
    z: [B, L], rising.
    signed: [B, L], s.

  Returns:
    [B, L] sums over all before it in the row, and [B, L] sums over those below
    it, which leave out its equals: by symmetry they pull neither way.
  """
  gaps = z - _later(z, 1)
  is_first = tf.range(z.shape[1]) == 0
  decay = tf.where(is_first, tf.zeros_like(z), tf.exp(-gaps))
  positions = tf.range(z.shape[1]) * tf.cast(gaps > 0, tf.int32)
  first_equal = tf.where(is_first, 0, positions)
  total, steps = signed, 1
  while steps < z.shape[1]:
    total += decay * _later(total, steps)
    decay *= _later(decay, steps)
    first_equal = tf.maximum(first_equal, _later(first_equal, steps))
    steps *= 2
  before = total - signed
  return before, tf.gather(before, first_equal, axis=1, batch_dims=1)


def _later(values: tf.Tensor, steps: int) -> tf.Tensor:
  """[B, L] values moved to later places, with zeros in front."""
  return tf.pad(values[:, :-steps], [[0, 0], [steps, 0]])


def _inverse(order: tf.Tensor) -> tf.Tensor:
  """[B, L] where an order [B, L] puts each element."""
  batch_size, length = tf.shape(order)[0], order.shape[1]
  rows = length * tf.range(batch_size)[:, tf.newaxis]
  places = tf.broadcast_to(tf.range(length), tf.shape(order))
  flat = tf.scatter_nd(
    tf.reshape(order + rows, [-1, 1]),
    tf.reshape(places, [-1]),
    [batch_size * length],
  )
  return tf.reshape(flat, [-1, length])
