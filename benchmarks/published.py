"""The MMD loss as it is published, to compare with.

Three [B, N, N] tensors of squared distances, each times ten bandwidths in one
tensor, exponentials, means, and automatic differentiation: the paper's formula
computed as the authors compute it. `mmd_squared_by_terms` is a kinder version
that takes the bandwidths one by one.
"""

import tensorflow as tf

BANDWIDTHS = tuple(float(h) for h in range(1, 11))


def _three_terms(x, y, mean_kernel):
  def distances(a, b):
    return tf.square(a[:, :, tf.newaxis] - b[:, tf.newaxis, :])

  total = (
    mean_kernel(distances(x, x))
    + mean_kernel(distances(y, y))
    - 2 * mean_kernel(distances(x, y))
  )
  return tf.where(total > 0, total, tf.zeros_like(total))


def mmd_squared(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """[B] squared MMD between [B, N] and [B, M], biased, clipped at zero."""
  inverse = tf.constant([1 / h for h in BANDWIDTHS])

  def mean_kernel(d2):
    exponents = tf.tensordot(inverse, d2, axes=0)  # [10, B, N, M]
    return tf.reduce_mean(tf.reduce_sum(tf.exp(-exponents), axis=0), [1, 2])

  return _three_terms(x, y, mean_kernel)


def mmd_squared_by_terms(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """The same, with one [B, N, M] tensor for each bandwidth."""

  def mean_kernel(d2):
    terms = [tf.exp(-d2 / h) for h in BANDWIDTHS]
    return tf.reduce_mean(tf.add_n(terms), [1, 2])

  return _three_terms(x, y, mean_kernel)
