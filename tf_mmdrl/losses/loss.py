"""What a loss is: predicted and target distributions -> numbers."""

import abc

import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution


class Loss(abc.ABC):
  """Losses of a batch; all in units of return.

  Attributes:
    beyond_what: the end of the sentence "50 % of ...", which names what the
      loss cannot reach.
    heeds_weights: whether particles of a target count by their weights.
  """

  beyond_what = ""
  heeds_weights = True

  @abc.abstractmethod
  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """Computes the losses [B] of a batch.

    Args:
      predicted: [B, N], of the actions taken.
      target: [B, M]; no gradient goes there.
      step: [] updates so far, for losses that change with them.

    Returns:
      One loss for each example.
    """

  @property
  def has_reach(self) -> bool:
    """Whether something can be out of the loss's reach."""
    return False

  def share_beyond(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    """[B] shares of the distributions that are out of the loss's reach."""
    del target
    return tf.zeros_like(predicted.values[:, 0])
