"""Kernels whose bandwidth follows the data or the training step.

A kernel rule is a function `(predicted [B, N], target [B, M], step) -> Kernel`
of two return distributions, as a loss is; no gradient flows through the
bandwidth.
"""

from typing import Callable, Optional, Union

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import kernels

KernelRule = Callable[
  [ReturnDistribution, ReturnDistribution, tf.Tensor], kernels.Kernel
]

# Halvings of the range: more than float32 can tell apart.
_BISECTIONS = 32
# Half of all weight, up to the rounding of sums in float64: if weights are
# equal, half of the pairs are enough.
_HALF = 0.5 - 1e-9


def fixed(kernel: kernels.Kernel) -> KernelRule:
  """Always the same kernel."""
  return lambda predicted, target, step: kernel


def median(scale: float = 2.0, *, least: float = 1e-4) -> KernelRule:
  """A Gaussian of bandwidth `scale` x the median of the squared distances.

  The median heuristic of kernel tests (Gretton et al., "A Kernel Two-Sample
  Test", 2012, Section 8). By default h = 2 x the median of d^2: the Gaussian's
  deviation is the median distance.

  A pair of particles counts as much as the product of their weights. Particles
  of equal weight count 1 each, predicted and target alike.

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

  def rule(predicted, target, step):
    del step
    both = (predicted, target)
    z = tf.concat([part.values for part in both], axis=1)
    weights = None
    if any(part.log_weights is not None for part in both):
      weights = tf.concat([_counts(part) for part in both], axis=1)
    h = scale * median_squared_distance(z, weights)
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

  def rule(predicted, target, step):
    del target
    step = tf.cast(step, predicted.values.dtype)
    done = tf.clip_by_value(step / num_steps, 0.0, 1.0)
    h = start * (end / start) ** done
    return kernels.GaussianMixture(tf.reshape(h, [1]))

  return rule


def reach(kernel: kernels.Kernel) -> Union[float, tf.Tensor]:
  """The reach of a kernel that a rule has made, whose bandwidth is a tensor.

  Args:
    kernel: any kernel.

  Returns:
    Its `reach`; of a mixture with bandwidths [K] or [B, K] the reach of its
    widest Gaussian, [] or [B, 1].
  """
  if not (
    isinstance(kernel, kernels.GaussianMixture)
    and tf.is_tensor(kernel.bandwidths)
  ):
    return kernel.reach
  widths = tf.convert_to_tensor(kernel.bandwidths)
  widest = tf.reduce_max(widths, axis=-1, keepdims=widths.shape.rank == 2)
  return kernels.gaussian(1.0).reach * tf.sqrt(widest)


def median_squared_distance(
  z: tf.Tensor, weights: Optional[tf.Tensor] = None
) -> tf.Tensor:
  """The median of |z_i - z_j|^2 over the pairs i < j, in O(L log L).

  Bisection on the distance: how much weight the pairs within it have follows
  from sums over the sorted particles, so no [L, L] matrix is formed.

  Args:
    z: [B, L] particles, L > 1.
    weights: [B, L]; a pair counts w_i w_j. All pairs count alike if None.

  Returns:
    [B] medians, with no gradient: the least squared distance within which half
    of the weight lies (of an even number of equal pairs, the lower one).
  """
  z = tf.stop_gradient(z)
  if weights is None:
    z, weights = tf.sort(z, axis=1), tf.ones_like(z, tf.float64)
  else:
    order = tf.argsort(z, axis=1)
    z = tf.gather(z, order, batch_dims=1)
    weights = tf.cast(tf.stop_gradient(weights), tf.float64)
    weights = tf.gather(weights, order, batch_dims=1)
  # Sums of no, one, ... L weights: [B, L + 1].
  sums = tf.pad(tf.cumsum(weights, axis=1), [[0, 0], [1, 0]])

  def of_pairs(ends):
    """[B] the weight of the pairs whose farther one comes before its end."""
    return tf.reduce_sum(weights * (ends - sums[:, 1:]), axis=1)

  wanted = _HALF * of_pairs(sums[:, -1:])

  def halve(low, high):
    middle = (low + high) / 2
    ends = tf.searchsorted(z, z + middle[:, tf.newaxis], side="right")
    enough = of_pairs(tf.gather(sums, ends, batch_dims=1)) >= wanted
    return tf.where(enough, low, middle), tf.where(enough, middle, high)

  _, high = tf.while_loop(
    lambda *_: True,
    halve,
    (tf.zeros_like(z[:, 0]), z[:, -1] - z[:, 0]),
    maximum_iterations=_BISECTIONS,
  )
  return tf.square(high)


def _counts(returns: ReturnDistribution) -> tf.Tensor:
  """[B, N] weights in float64 whose mean is 1."""
  if returns.log_weights is None:
    return tf.ones_like(returns.values, tf.float64)
  log_weights = tf.cast(returns.log_weights, tf.float64)
  return returns.values.shape[1] * tf.nn.softmax(log_weights, axis=1)
