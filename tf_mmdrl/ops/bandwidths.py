"""Kernels whose bandwidth follows the data or the training step.

A kernel rule is a function `(x [B, N], y [B, M], step) -> Kernel`, called with
the predicted and target particles; no gradient flows through the bandwidth.
"""

from typing import Callable

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernels

KernelRule = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], kernels.Kernel]

# Halvings of the range: more than float32 can tell apart.
_BISECTIONS = 32


def fixed(kernel: kernels.Kernel) -> KernelRule:
  """Always the same kernel."""
  return lambda x, y, step: kernel


def median(scale: float = 2.0, *, least: float = 1e-4) -> KernelRule:
  """A Gaussian of bandwidth `scale` x the median of the squared distances.

  The median heuristic of kernel tests (Gretton et al., "A Kernel Two-Sample
  Test", 2012, Section 8). By default h = 2 x the median of d^2: the Gaussian's
  deviation is the median distance.

  Args:
    scale: what multiplies the median.
    least: the bandwidth where more than half of the pairs coincide.

  Returns:
    The rule; one bandwidth for each example.
  """
  if not (scale > 0 and least > 0):
    raise errors.UserError(
      f"scale and least must be positive, got {scale} and {least}"
    )

  def rule(x, y, step):
    del step
    h = scale * median_squared_distance(tf.concat([x, y], axis=1))
    return kernels.GaussianMixture(tf.maximum(h, least)[:, tf.newaxis])

  return rule


def annealed(start: float, end: float, num_steps: int) -> KernelRule:
  """A Gaussian whose bandwidth goes geometrically from start to end.

  h = start (end / start)^(step / num_steps). Made for this library.

  Args:
    start: bandwidth at step 0.
    end: bandwidth from step `num_steps` on.
    num_steps: training steps in between.

  Returns:
    The rule.
  """
  if not (start > 0 and end > 0 and num_steps > 0):
    raise errors.UserError(
      "start, end and num_steps must be positive, got"
      f" {start}, {end} and {num_steps}"
    )

  def rule(x, y, step):
    del y
    done = tf.clip_by_value(tf.cast(step, x.dtype) / num_steps, 0.0, 1.0)
    h = start * (end / start) ** done
    return kernels.GaussianMixture(tf.reshape(h, [1]))

  return rule


def median_squared_distance(z: tf.Tensor) -> tf.Tensor:
  """The median of |z_i - z_j|^2 over the pairs i < j, in O(L log L).

  Bisection on the distance: how many pairs are closer is a count in the sorted
  particles, so no [L, L] matrix is formed.

  Args:
    z: [B, L] particles, L > 1.

  Returns:
    [B] medians (the lower one of an even number of pairs), with no gradient.
  """
  z = tf.sort(tf.stop_gradient(z), axis=1)
  num = z.shape[1]
  wanted = (num * (num - 1) // 2 + 1) // 2
  itself = tf.range(1, num + 1)

  def halve(low, high):
    middle = (low + high) / 2
    within = tf.searchsorted(z, z + middle[:, tf.newaxis], side="right")
    enough = tf.reduce_sum(within - itself, axis=1) >= wanted
    return tf.where(enough, low, middle), tf.where(enough, middle, high)

  _, high = tf.while_loop(
    lambda *_: True,
    halve,
    (tf.zeros_like(z[:, 0]), z[:, -1] - z[:, 0]),
    maximum_iterations=_BISECTIONS,
  )
  return tf.square(high)
