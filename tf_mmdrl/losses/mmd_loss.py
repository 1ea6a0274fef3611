"""The squared MMD as a loss."""

import dataclasses
import math
from typing import Union

import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses.loss import Loss
from tf_mmdrl.ops import bandwidths, kernels, mmd, reach


@dataclasses.dataclass(frozen=True)
class MMDLoss(Loss):
  """MMD^2 between predicted and target particles (Algorithm 1, output).

  Attributes:
    kernel: a kernel, or a rule that makes one from the two distributions and
      the training step (see `ops.bandwidths`).
    estimator: biased, as in the paper, or unbiased.
    method: how it is computed.
    by_xla: whether XLA compiles it; see `mmd.mmd_squared`.
    mean_distance: of joint distributions, whether the kernel is one of the mean
      over the D returns of the squared differences (MD3QN) instead of their
      sum, the squared Euclidean distance.
  """

  beyond_what = (
    "the error of predictions is of particles that are farther from every"
    " particle of their target than the kernel reaches"
  )
  # The transitions that end an episode are few, and all others learn from them.
  # Where they are out of reach, most of the batch may well be in it.
  too_far_beyond = 0.2

  kernel: Union[kernels.Kernel, bandwidths.KernelRule]
  estimator: mmd.Estimator = mmd.Estimator.BIASED
  method: mmd.Method = mmd.Method.AUTO
  by_xla: bool = False
  mean_distance: bool = False

  @property
  def has_reach(self) -> bool:
    """Whether the kernel has no gradient beyond some distance."""
    if isinstance(self.kernel, kernels.Kernel):
      return math.isfinite(self.kernel.reach)
    return True  # a rule says it when it makes a kernel

  def share_beyond(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    error: tf.Tensor,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[] the share of particles that no target pulls, averaged by the error.

    Args:
      predicted: [B, N].
      target: [B, M].
      error: [B] how far the means are apart.
      step: [] of training, for a rule.

    Returns:
      A share in [0, 1].
    """
    shares = reach.share_beyond(
      self._scaled(predicted.values),
      self._scaled(target.values),
      bandwidths.reach(self._kernel(predicted, target, step)),
      x_weights=predicted.weights(),
    )
    # In the largest one's unit: their sum might be too large for a float32.
    error = tf.abs(error)
    error = tf.math.divide_no_nan(error, tf.reduce_max(error))
    lost = tf.reduce_sum(error * shares)
    return tf.math.divide_no_nan(lost, tf.reduce_sum(error))

  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[B] losses of predicted [B, N] against target [B, M] distributions.

    Joint distributions are [B, N, D] and [B, M, D].

    Args:
      predicted: what has a gradient.
      target: what has none.
      step: [] of training, for a rule.

    Returns:
      The losses.
    """
    return mmd.mmd_squared(
      self._scaled(predicted.values),
      self._scaled(target.values),
      kernel=self._kernel(predicted, target, step),
      x_log_weights=predicted.log_weights,
      y_log_weights=target.log_weights,
      estimator=self.estimator,
      method=self.method,
      by_xla=self.by_xla,
    )

  def _kernel(self, predicted, target, step) -> kernels.Kernel:
    """The kernel, which a rule makes anew."""
    if isinstance(self.kernel, kernels.Kernel):
      return self.kernel
    return self.kernel(predicted, target, step)

  def _scaled(self, values: tf.Tensor) -> tf.Tensor:
    """Values whose squared distances are what the kernel is a function of."""
    if not self.mean_distance or values.shape.rank == 2:
      return values
    return values / math.sqrt(values.shape[-1])
