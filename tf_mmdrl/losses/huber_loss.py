"""Q-learning's loss."""

import dataclasses

import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses.loss import Loss
from tf_mmdrl.ops import quantiles


@dataclasses.dataclass(frozen=True)
class HuberLoss(Loss):
  """Huber's function of the difference between the expected returns.

  Attributes:
    kappa: where it goes from a parabola to a line, in units of return.
  """

  kappa: float = 1.0

  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[B] losses of predicted [B, N] against target [B, M] distributions."""
    del step
    # The means: the target has several particles under a soft policy.
    return quantiles.huber(target.mean() - predicted.mean(), kappa=self.kappa)
