"""What a loss is: predicted and target distributions -> numbers."""

import abc

import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution


class Loss(abc.ABC):
  """Losses of a batch; all in units of return.

  Attributes:
    beyond_what: the end of the sentence "50 % of ...", which names what the
      loss cannot reach.
    too_far_beyond: the share of it with which learning goes wrong, if it
      stays so large.
    heeds_weights: whether particles of a target count by their weights.
  """

  beyond_what = ""
  too_far_beyond = 0.5
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
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    error: tf.Tensor,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """The share of `beyond_what` in a batch; asked for if `has_reach`.

    Args:
      predicted: [B, N], in units.
      target: [B, M], in units.
      error: [B] how far the means are apart, in any unit; 0 where nothing is
        to be learnt.
      step: [] updates so far.

    Returns:
      [] share in [0, 1].
    """
    raise NotImplementedError
