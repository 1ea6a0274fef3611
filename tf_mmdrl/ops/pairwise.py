"""The squared MMD of any kernel, pair by pair.

The three-term formula cancels: near convergence terms of the kernel's size
leave a difference of 1e-7 and less. It is therefore summed in float64. Rows go
in chunks, so that memory does not grow with N^2, and value and closed-form
gradient come in one pass, so that nothing is kept for the backward pass.

`signed_discrepancy` is several times as fast where XLA compiles it: it computes
in the particles' own dtype. There the terms do not cancel at the end: each row
sums over both samples with signed weights, in turns, so that sums stay small.
What is left is the rounding of the kernel's values, about 1e-7 of their size.

A kernel with a cusp wants more care, as its slope has no bound near distance 0.
XLA may round one particle in two ways, as a row and as a column, because it
fuses differences with what came before them. A distance of such a size counts
as 0. Forces are sums of slopes times differences: the difference of two sums,
by which smooth kernels go, would be rounded at the size of the slopes.
"""

import functools
from typing import NamedTuple, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops.discrepancy import Discrepancy
from tf_mmdrl.ops.kernels import Kernel

# Pairs of one example that are in memory at a time.
_CHUNK = 2**16
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
  x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
  xx, xx_force, _ = _interact(x, x, x_weights, kernel)
  xy, xy_force, _ = _interact(x, y, y_weights, kernel)
  yy = _interact(y, y, y_weights, kernel, with_force=False).potential
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
  d_particles = 2 * x_weights[:, :, tf.newaxis] * (xx_force - xy_force)
  return Discrepancy(
    tf.cast(value, dtype),
    tf.cast(d_particles, dtype),
    tf.cast(x_d_weights - 2 * xy, dtype),
  )


def signed_discrepancy(
  x: tf.Tensor,
  y: tf.Tensor,
  x_weights: tf.Tensor,
  y_weights: tf.Tensor,
  *,
  kernel: Kernel,
  order: np.ndarray,
) -> Discrepancy:
  """MMD^2 = s^T K s with its derivatives, for kernels of distances.

  Args:
    x: [B, N, D] particles.
    y: [B, M, D] particles.
    x_weights: [B, N], summing to 1.
    y_weights: [B, M], summing to 1.
    kernel: a shift-invariant kernel.
    order: [N + M] an order of x and then y, in which they take turns.

  Returns:
    The discrepancy, in the dtype of x, and not negative.
  """
  x_weights, y_weights = (
    tf.cast(x_weights, x.dtype),
    tf.cast(y_weights, x.dtype),
  )
  both = tf.concat([x, y], axis=1)
  # Forces are differences of sums that grow with the distance from 0.
  centre = tf.reduce_mean(both, axis=1, keepdims=True)
  x, y, both = x - centre, y - centre, both - centre
  both = tf.gather(both, order, axis=1)
  signed = tf.concat([x_weights, -y_weights], axis=1)
  signed = tf.gather(signed, order, axis=1)
  # Signed weights sum to 0, so any constant may be taken from the kernel. Far
  # apart it is nearly -k(0) for all pairs, and what counts is the rest.
  some, _ = kernel.excess_and_slope(_squared_distances(x[:, :1], both))
  usual = tf.reduce_mean(some, axis=2, keepdims=True)
  interact = functools.partial(
    _interact, kernel=kernel, centre=centre, usual=usual
  )
  of_x, force, by_x = interact(x, both, signed, row_weights=x_weights)
  # Pairs of x and y are known from the rows of x, and are not computed again.
  by_x = tf.gather(by_x, np.argsort(order)[x.shape[1] :], axis=1)
  of_y = by_x - interact(y, y, y_weights, with_force=False).potential
  value = tf.reduce_sum(x_weights * of_x, axis=1)
  value -= tf.reduce_sum(y_weights * of_y, axis=1)
  return Discrepancy(
    tf.maximum(value, 0),
    2 * x_weights[:, :, tf.newaxis] * force,
    2 * of_x,
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


class _Interaction(NamedTuple):
  """What rows x_i have to do with columns y_j of other weights.

  Attributes:
    potential: [B, N] sums over j of w_j (k(x_i, y_j) - k(0)).
    force: [B, N, D] their derivatives in x_i; zeros if not asked for.
    by_rows: [B, M] sums over i of v_i (k(x_i, y_j) - k(0)), v the weights of
      rows; zeros if there are none.
  """

  potential: tf.Tensor
  force: tf.Tensor
  by_rows: tf.Tensor


def _interact(
  x,
  y,
  weights,
  kernel,
  *,
  with_force=True,
  row_weights=None,
  centre=None,
  usual=None,
) -> _Interaction:
  """The interaction, in chunks of rows.

  Args:
    x: [B, N, D].
    y: [B, M, D].
    weights: [B, M].
    kernel: the kernel.
    with_force: whether to compute the force.
    row_weights: [B, N], or None.
    centre: [B, 1, D] what was taken from x and y, if anything.
    usual: [B, 1, 1] what to take from k(x_i, y_j) - k(0), if anything.

  Returns:
    The interaction.
  """
  num_rows, num_columns = x.shape[1], y.shape[1]
  rows = max(1, _CHUNK // num_columns)
  if rows >= num_rows:
    return _interact_rows(
      x, y, weights, kernel, with_force, centre, usual, row_weights
    )
  num_chunks = -(-num_rows // rows)
  rows = -(-num_rows // num_chunks)  # alike, so that few are padded

  def in_chunks(part):  # [B, N, ...] as [chunks, B, rows, ...]
    rest = [[0, 0]] * (part.shape.rank - 2)
    part = tf.pad(part, [[0, 0], [0, num_chunks * rows - num_rows], *rest])
    part = tf.reshape(part, [-1, num_chunks, rows, *part.shape[2:]])
    return tf.transpose(part, [1, 0, *range(2, part.shape.rank)])

  def in_one(part):
    part = tf.transpose(part, [1, 0, *range(2, part.shape.rank)])
    part = tf.reshape(part, [-1, num_chunks * rows, *part.shape[3:]])
    return part[:, :num_rows]

  chunks: Tuple[tf.Tensor, ...] = (in_chunks(x),)
  if row_weights is not None:
    shape = tf.shape(x)[:2]
    chunks += (in_chunks(tf.broadcast_to(row_weights, shape)),)
  found = tf.map_fn(
    lambda chunk: _interact_rows(
      chunk[0], y, weights, kernel, with_force, centre, usual, *chunk[1:]
    ),
    chunks,
    fn_output_signature=_Interaction(*[x.dtype] * 3),
    parallel_iterations=1,
  )
  return _Interaction(
    in_one(found.potential),
    in_one(found.force),
    tf.reduce_sum(found.by_rows, axis=0),
  )


def _interact_rows(
  x, y, weights, kernel, with_force, centre, usual, row_weights=None
) -> _Interaction:
  """`_interact` for rows that fit in memory together."""
  shift_invariant = kernel.properties.shift_invariant
  if shift_invariant:
    statistic = _squared_distances(x, y)
    if kernel.has_cusp:
      rounding = _rounding(x, centre)[:, :, tf.newaxis]
      statistic = tf.where(statistic > rounding, statistic, 0)
  else:
    statistic = tf.matmul(x, y, transpose_b=True)
  excess, slope = kernel.excess_and_slope(statistic)
  if usual is not None:
    excess -= usual
  potential = tf.linalg.matvec(excess, weights)
  by_rows = tf.zeros_like(y[:, :, 0])
  if row_weights is not None:
    by_rows = tf.linalg.matvec(excess, row_weights, transpose_a=True)
  if not with_force:
    return _Interaction(potential, tf.zeros_like(x), by_rows)
  pull = slope * weights[:, tf.newaxis]
  if kernel.has_cusp:
    return _Interaction(potential, _force_of_differences(x, y, pull), by_rows)
  # The force is linear in y, so it needs no tensor of [B, N, M, D]. A column of
  # ones gives the sum of the pulls in the same pass.
  ones = tf.ones_like(y[:, :, :1])
  force = tf.matmul(pull, tf.concat([y, ones], axis=2))
  force, total = force[:, :, :-1], force[:, :, -1:]
  if shift_invariant:
    force = 2 * (x * total - force)
  return _Interaction(potential, force, by_rows)


def _squared_distances(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """[B, N, M] of x [B, N, D] and y [B, M, D]."""
  return sum(
    tf.math.squared_difference(a[:, :, tf.newaxis], b[:, tf.newaxis])
    for a, b in zip(tf.unstack(x, axis=2), tf.unstack(y, axis=2))
  )


def _rounding(x: tf.Tensor, centre) -> tf.Tensor:
  """[B, N] squared distances that rounding may give x [B, N, D] from itself."""
  unit = _ROUNDINGS * np.finfo(x.dtype.as_numpy_dtype).eps
  size = tf.abs(x) if centre is None else tf.abs(x) + tf.abs(centre)
  return tf.reduce_sum((unit * size) ** 2, axis=2)


def _force_of_differences(x, y, pull) -> tf.Tensor:
  """[B, N, D] sums over j of 2 pull_ij (x_i - y_j), of pull [B, N, M]."""
  return tf.stack(
    [
      2 * tf.reduce_sum(pull * (a[:, :, tf.newaxis] - b[:, tf.newaxis]), axis=2)
      for a, b in zip(tf.unstack(x, axis=2), tf.unstack(y, axis=2))
    ],
    axis=2,
  )
