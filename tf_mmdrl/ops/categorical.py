"""Distributions on a fixed grid of returns: Bellemare et al., "A Distributional
Perspective on Reinforcement Learning", 2017 (C51).
"""

from typing import Tuple

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
  """[B] cross-entropies of predictions [B, N] under targets [B, N]."""
  return -tf.reduce_sum(target * log_probabilities, axis=-1)


def resample(
  num_atoms: int, v_min: float, v_max: float, factor: tf.Tensor
) -> Tuple[tf.Tensor, tf.Tensor]:
  """Logits on the same grid for returns that are `factor` times as large.

  A network emits logits, so probabilities cannot be projected once and for
  all; its logits are read off at where the new atoms lie on the old grid: on a
  line between two, averaged over the width of a new atom where the grid
  becomes coarser (a point between two new atoms then goes to both, as C51's
  projection does). Beyond the old grid they fall by 1 an atom.

  Args:
    num_atoms: N.
    v_min: the lowest atom.
    v_max: the highest atom.
    factor: [] what multiplies returns: old unit / new unit.

  Returns:
    A [N, N] matrix and a [N] shift: new logits = old logits @ matrix + shift.
  """
  gap = (v_max - v_min) / (num_atoms - 1)
  grid = v_min + gap * tf.range(num_atoms, dtype=tf.float32)
  place = (grid / factor - v_min) / gap  # of the new atoms, in old ones
  inside = tf.clip_by_value(place, 0.0, num_atoms - 1.0)
  old = tf.range(num_atoms, dtype=tf.float32)[:, tf.newaxis]
  width = tf.maximum(1.0, 1 / factor)
  share = tf.nn.relu(1 - tf.abs(old - inside) / width)
  matrix = share / tf.reduce_sum(share, axis=0, keepdims=True)
  return matrix, -tf.abs(place - inside) * factor
