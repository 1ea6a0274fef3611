"""What one transition does to a row of N numbers, in closed form.

The two cases of Algorithm 2, MMDRL and QRDRL, and CDRL, which it lacks.
"""

from typing import Callable

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import categorical, kernels

# (row [W, N], successor's row [W, N], reward [W, 1], discount [W, 1],
#  rate [W, 1]) -> the row after the step [W, N].
Update = Callable[..., tf.Tensor]


def mmd_gradient(
  particles: tf.Tensor, target: tf.Tensor, kernel: kernels.Kernel
) -> tf.Tensor:
  """Gradient of MMD_b^2 in the particles, in closed form.

  Args:
    particles: [W, N].
    target: [W, M] particles.
    kernel: the kernel k.

  Returns:
    [W, N] gradients: 2/N (mean_j k'(x_i, x_j) - mean_j k'(x_i, y_j)).
  """
  # The pair axis comes before the particles', so that the sum over it runs
  # over vectors: twice as fast on a CPU.
  x = particles[:, None, :]
  own = tf.reduce_mean(kernel.gradient(x, particles[:, :, None]), 1)
  cross = tf.reduce_mean(kernel.gradient(x, target[:, :, None]), 1)
  return (2 / particles.shape[-1]) * (own - cross)


def quantile_gradient(particles: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """Gradient of the quantile regression loss at the levels (2i - 1) / 2N.

  Args:
    particles: [W, N], the i-th at the i-th level.
    target: [W, M] particles.

  Returns:
    [W, N] gradients: the share of targets below each particle less its level.
  """
  count = particles.shape[-1]
  levels = (np.arange(count) + 0.5) / count
  below = target[:, None, :] < particles[:, :, None]
  share = tf.reduce_mean(tf.cast(below, particles.dtype), -1)
  return share - tf.constant(levels, particles.dtype)


def mmd_update(kernel: kernels.Kernel) -> Update:
  """The MMDRL case of Algorithm 2."""

  def update(row, successor, reward, discount, rate):
    target = reward + discount * successor
    return row - rate * mmd_gradient(row, target, kernel)

  return update


def quantile_update(row, successor, reward, discount, rate) -> tf.Tensor:
  """The QRDRL case of Algorithm 2."""
  target = reward + discount * successor
  return row - rate * quantile_gradient(row, target)


def categorical_update(support: np.ndarray) -> Update:
  """CDRL: the row moves by `rate` towards the projected target.

  This is categorical temporal-difference learning; the paper's Algorithm 2 has
  no CDRL case.

  Args:
    support: [N] evenly spaced returns.
  """

  def update(row, successor, reward, discount, rate):
    atoms = tf.constant(support, row.dtype)
    target = categorical.project(reward + discount * atoms, successor, atoms)
    return row + rate * (target - row)

  return update
