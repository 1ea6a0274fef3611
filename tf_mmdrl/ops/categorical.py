"""Distributions on a fixed grid of returns: Bellemare et al., "A Distributional
Perspective on Reinforcement Learning", 2017 (C51).
"""

import tensorflow as tf


def project(
  values: tf.Tensor, probabilities: tf.Tensor, support: tf.Tensor
) -> tf.Tensor:
  """C51's projection of a distribution onto an even grid (equation 7).

  Args:
    values: [B, M]; outside the grid they count as its nearest end.
    probabilities: [B, M].
    support: [N], or [B, N], evenly spaced and increasing.

  Returns:
    [B, N] probabilities: each value's share goes to its two neighbours.
  """
  low, high = support[..., :1], support[..., -1:]
  values = tf.clip_by_value(values, low, high)
  gap = (support[..., 1:2] - low)[..., tf.newaxis]
  distance = tf.abs(values[:, tf.newaxis, :] - support[..., tf.newaxis]) / gap
  share = tf.nn.relu(1 - distance)
  return tf.reduce_sum(share * probabilities[:, tf.newaxis, :], -1)


def cross_entropy(log_probabilities: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """[B] cross-entropies of predictions [B, N] under target [B, N] laws."""
  return -tf.reduce_sum(target * log_probabilities, axis=-1)
