"""Quantile regression: Dabney et al., "Distributional Reinforcement Learning
with Quantile Regression", 2018.
"""

from typing import Optional

import tensorflow as tf


def midpoints(num: int, dtype=tf.float32) -> tf.Tensor:
  """[N] levels (2 i + 1) / 2 N, i = 0 .. N - 1 (Lemma 2)."""
  return (tf.range(num, dtype=dtype) + 0.5) / num


def huber(u: tf.Tensor, kappa: float) -> tf.Tensor:
  """The Huber loss over kappa; |u| for kappa = 0 (equations 9 and 10)."""
  size = tf.abs(u)
  if kappa == 0:
    return size
  inner = tf.minimum(size, kappa)
  return inner * (size - inner / 2) / kappa


def quantile_huber(
  predicted: tf.Tensor,
  levels: tf.Tensor,
  target: tf.Tensor,
  *,
  kappa: float,
  target_weights: Optional[tf.Tensor] = None,
) -> tf.Tensor:
  """sum_i E_j |level_i - 1{y_j < x_i}| huber(y_j - x_i) (Algorithm 1).

  Args:
    predicted: [B, N] quantiles x.
    levels: [N] or [B, N], of each.
    target: [B, M] particles y.
    kappa: where the loss goes from square to straight; 0: straight all over.
    target_weights: [B, M] that sum to 1; uniform if None.

  Returns:
    [B] losses.
  """
  u = target[:, tf.newaxis, :] - predicted[:, :, tf.newaxis]
  below = tf.cast(u < 0, u.dtype)
  loss = tf.abs(levels[..., tf.newaxis] - below) * huber(u, kappa)
  if target_weights is None:
    expected = tf.reduce_mean(loss, axis=2)
  else:
    expected = tf.reduce_sum(target_weights[:, tf.newaxis] * loss, axis=2)
  return tf.reduce_sum(expected, axis=1)
