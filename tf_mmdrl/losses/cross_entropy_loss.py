"""C51's loss."""

import dataclasses

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses.loss import Loss
from tf_mmdrl.ops import categorical


@dataclasses.dataclass(frozen=True)
class CrossEntropyLoss(Loss):
  """Cross-entropy to the target, projected onto the predicted atoms."""

  beyond_what = "the targets' probability lies beyond the atoms"

  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[B] losses of predicted [B, N] against target [B, M] distributions."""
    del step
    if predicted.log_weights is None:
      raise errors.UserError(
        "C51 needs a head that gives weights of fixed returns, got particles"
        " of equal weight; use ReturnNetwork(..., heads.categorical(51))"
      )
    projected = categorical.project(
      target.values, target.weights(), tf.stop_gradient(predicted.values)
    )
    return categorical.cross_entropy(predicted.log_weights, projected)

  @property
  def has_reach(self) -> bool:
    """Always true: the atoms cover a limited range."""
    return True

  def share_beyond(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    error: tf.Tensor,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[] the target's probability outside of the atoms, averaged."""
    del error, step
    low, high = predicted.values[:, :1], predicted.values[:, -1:]
    outside = (target.values < low) | (target.values > high)
    lost = tf.reduce_sum(tf.where(outside, target.weights(), 0.0), axis=1)
    return tf.reduce_mean(lost)
