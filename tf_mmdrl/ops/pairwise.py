"""The squared MMD of any kernel, pair by pair.

The three-term formula cancels: near convergence terms of the kernel's size
leave a difference of 1e-7 and less, and out of a Gaussian's reach forces of a
millionth of it are all that there is. Everything is therefore float64, from the
differences of particles on. Rows go in chunks, so that memory does not grow
with N^2, and value and closed-form gradient come in one pass, so that nothing
is kept for the backward pass.

A kernel with a cusp wants more care, as its slope has no bound near distance 0.
XLA may round one particle in two ways, as a row and as a column, because it
fuses what follows with what came before. A distance of such a size counts as 0.
Forces of float64 particles are sums of slopes times differences: the difference
of two sums, by which all others go, would be rounded at the size of the slopes,
which for float32 particles is at most some 1e9 of what is rounded to 1e-16.
"""

from typing import NamedTuple, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy
from tf_mmdrl.ops.kernels import Kernel

# Pairs of one example that are in memory at a time.
_CHUNK = 2**16
# Halves of fewer particles save less than XLA takes to compile them.
_FEW = 50
# Roundings of a particle that two ways to compute it may differ by.
_ROUNDINGS = 8


def discrepancy(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  kernel: Kernel,
  unbiased: bool = False,
) -> Discrepancy:
  """MMD^2 with its derivatives.

  Args:
    x: [B, N, D] particles.
    y: [B, M, D] particles.
    x_weights: [B, N] or [1, N] float64, summing to 1.
    y_weights: [B, M] or [1, M] float64, summing to 1.
    kernel: the kernel.
    unbiased: leave out the pairs of a particle with itself (U-statistic).

  Returns:
    The discrepancy, in the dtype of x.
  """
  dtype = x.dtype
  if dtype == tf.float32:
    kernel = kernel.for_float32()
  pairs = _Pairs(kernel, dtype)
  x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
  xx, xx_force = _interact_among(x, x_weights, pairs)
  xy, xy_force = _interact(x, y, y_weights, pairs)
  yy = _interact_among(y, y_weights, pairs, with_force=False).potential
  if unbiased:
    x_term, x_d_weights, xx_force = _without_self(
      x, x_weights, xx, xx_force, kernel
    )
    y_term, _, _ = _without_self(y, y_weights, yy, tf.zeros_like(y), kernel)
  else:
    x_term = tf.reduce_sum(x_weights * xx, axis=1)
    y_term = tf.reduce_sum(y_weights * yy, axis=1)
    x_d_weights = 2 * xx
  value = x_term + y_term - 2 * tf.reduce_sum(x_weights * xy, axis=1)
  if not unbiased:
    value = tf.maximum(value, 0)  # the last rounding may go below
  d_particles = 2 * x_weights[:, :, tf.newaxis] * (xx_force - xy_force)
  return Discrepancy(
    tf.cast(value, dtype),
    tf.cast(d_particles, dtype),
    tf.cast(x_d_weights - 2 * xy, dtype),
  )


def _without_self(x, weights, potential, force, kernel):
  """The U-statistic of one sample: sum_(i != j) / (1 - sum_i w_i^2).

  Args:
    x: [B, N, D] particles.
    weights: [B, N].
    potential: [B, N] sums over j of w_j k(x_i, x_j).
    force: [B, N, D] their derivatives.
    kernel: the kernel.

  Returns:
    [B] the term, its derivatives [B, N] in the weights, and the [B, N, D] force
    that gives its derivatives in the particles.
  """
  if kernel.properties.shift_invariant:
    own, own_force = tf.zeros_like(potential), tf.zeros_like(x)
  else:
    own, slope = kernel.excess_and_slope(tf.reduce_sum(x * x, axis=2))
    own_force = x * slope[:, :, tf.newaxis]
  norm = 1 - tf.reduce_sum(weights**2, axis=1, keepdims=True)
  others = potential - weights * own
  term = tf.reduce_sum(weights * others, axis=1, keepdims=True) / norm
  d_weights = 2 * (others + weights * term) / norm
  norm, weights = norm[:, :, tf.newaxis], weights[:, :, tf.newaxis]
  return term[:, 0], d_weights, (force - weights * own_force) / norm


class _Pairs(NamedTuple):
  """How pairs are compared.

  Attributes:
    kernel: the kernel.
    dtype: that of the particles before they became float64.
  """

  kernel: Kernel
  dtype: tf.DType

  def excess_and_slope(self, x, y) -> Tuple[tf.Tensor, tf.Tensor]:
    """[B, N, M] each, of x [B, N, D] and y [B, M, D]."""
    if not self.kernel.properties.shift_invariant:
      statistic = tf.matmul(x, y, transpose_b=True)
      return self.kernel.excess_and_slope(statistic)
    statistic = _squared_distances(x, y)
    if self.kernel.has_cusp:
      unit = _ROUNDINGS * np.finfo(self.dtype.as_numpy_dtype).eps
      rounding = tf.reduce_sum((unit * x) ** 2, axis=2, keepdims=True)
      statistic = tf.where(statistic > rounding, statistic, 0)
    return self.kernel.excess_and_slope(statistic)

  def force(self, x, y, weights, slope) -> tf.Tensor:
    """[B, N, D] sums over j of the derivatives in x_i of w_j k(x_i, y_j)."""
    if self.kernel.has_cusp and self.dtype == tf.float64:
      return _force_of_differences(x, y, slope * weights[:, tf.newaxis])
    # It is linear in y, so it needs no tensor of [B, N, M, D]. A column of
    # weights gives the sum of the pulls in the same pass.
    ones = tf.ones_like(y[:, :, :1])
    columns = weights[:, :, tf.newaxis] * tf.concat([y, ones], axis=2)
    force = tf.matmul(slope, columns)
    force, total = force[:, :, :-1], force[:, :, -1:]
    if self.kernel.properties.shift_invariant:
      force = 2 * (x * total - force)
    return force


class _Interaction(NamedTuple):
  """What rows x_i have to do with columns y_j of weights w_j.

  Attributes:
    potential: [B, N] sums over j of w_j (k(x_i, y_j) - k(0)).
    force: [B, N, D] their derivatives in x_i; zeros if not asked for.
  """

  potential: tf.Tensor
  force: tf.Tensor


def _interact_among(x, weights, pairs, with_force=True) -> _Interaction:
  """`_interact` of particles with themselves, most pairs computed once.

  Those of one half with the other are; each half goes on by itself.

  Args:
    x: [B, N, D].
    weights: [B, N] or [1, N].
    pairs: how pairs are compared.
    with_force: whether to compute the force.

  Returns:
    The interaction.
  """
  num = x.shape[1]
  half = num // 2
  if num % 2 or half < _FEW or half**2 > _CHUNK:
    return _interact(x, x, weights, pairs, with_force)
  weights = tf.broadcast_to(weights, tf.shape(x)[:2])
  x_1, x_2 = x[:, :half], x[:, half:]
  weights_1, weights_2 = weights[:, :half], weights[:, half:]
  excess, slope = pairs.excess_and_slope(x_1, x_2)
  first = _sums(x_1, x_2, weights_2, pairs, excess, slope, with_force)
  excess, slope = map(tf.linalg.matrix_transpose, (excess, slope))
  second = _sums(x_2, x_1, weights_1, pairs, excess, slope, with_force)
  halves = _interact_among(
    tf.reshape(x, [-1, half, x.shape[2]]),
    tf.reshape(weights, [-1, half]),
    pairs,
    with_force,
  )
  return _Interaction(
    *(
      tf.concat([one, two], axis=1)
      + tf.reshape(both, [-1, num, *both.shape[2:]])
      for one, two, both in zip(first, second, halves)
    )
  )


def _interact(x, y, weights, pairs, with_force=True) -> _Interaction:
  """The interaction, in chunks of rows.

  Args:
    x: [B, N, D].
    y: [B, M, D].
    weights: [B, M] or [1, M].
    pairs: how pairs are compared.
    with_force: whether to compute the force.

  Returns:
    The interaction.
  """

  def interact(rows):
    excess, slope = pairs.excess_and_slope(rows, y)
    return _sums(rows, y, weights, pairs, excess, slope, with_force)

  num_rows, num_columns = x.shape[1], y.shape[1]
  rows = max(1, _CHUNK // num_columns)
  if rows >= num_rows:
    return interact(x)
  num_chunks = -(-num_rows // rows)
  rows = -(-num_rows // num_chunks)  # alike, so that few are padded
  x = tf.pad(x, [[0, 0], [0, num_chunks * rows - num_rows], [0, 0]])
  x = tf.reshape(x, [-1, num_chunks, rows, x.shape[2]])
  found = tf.map_fn(
    interact,
    tf.transpose(x, [1, 0, 2, 3]),  # [chunks, B, rows, D]
    fn_output_signature=_Interaction(tf.float64, tf.float64),
    parallel_iterations=1,
  )

  def in_one(part):
    part = tf.transpose(part, [1, 0, *range(2, part.shape.rank)])
    part = tf.reshape(part, [-1, num_chunks * rows, *part.shape[3:]])
    return part[:, :num_rows]

  return _Interaction(*map(in_one, found))


def _sums(x, y, weights, pairs, excess, slope, with_force) -> _Interaction:
  """The interaction, of what all pairs are [B, N, M]."""
  force = pairs.force(x, y, weights, slope) if with_force else tf.zeros_like(x)
  return _Interaction(tf.linalg.matvec(excess, weights), force)


def _squared_distances(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """[B, N, M] of x [B, N, D] and y [B, M, D]."""
  return sum(
    tf.math.squared_difference(a[:, :, tf.newaxis], b[:, tf.newaxis])
    for a, b in zip(tf.unstack(x, axis=2), tf.unstack(y, axis=2))
  )


def _force_of_differences(x, y, pull) -> tf.Tensor:
  """[B, N, D] sums over j of 2 pull_ij (x_i - y_j), of pull [B, N, M]."""
  return tf.stack(
    [
      2 * tf.reduce_sum(pull * (a[:, :, tf.newaxis] - b[:, tf.newaxis]), axis=2)
      for a, b in zip(tf.unstack(x, axis=2), tf.unstack(y, axis=2))
    ],
    axis=2,
  )
