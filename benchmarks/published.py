"""The MMD loss as the formula is usually written, to compare with.

Three [B, N, N] tensors of squared distances, ten exponentials of each, and
automatic differentiation: what the paper's formula is when typed in directly.
"""

import tensorflow as tf


def mmd_squared(x: tf.Tensor, y: tf.Tensor, hs=range(1, 11)) -> tf.Tensor:
  """[B] squared MMD between [B, N] and [B, M], biased, clipped at zero."""

  def mean_kernel(a, b):
    d2 = tf.square(a[:, :, tf.newaxis] - b[:, tf.newaxis, :])
    k = tf.add_n([tf.exp(-d2 / float(h)) for h in hs])
    return tf.reduce_mean(k, axis=[1, 2])

  total = mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y)
  return tf.maximum(total, 0.0)
