"""Quantile regression as a loss."""

import dataclasses

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses.loss import Loss
from tf_mmdrl.ops import quantiles


@dataclasses.dataclass(frozen=True)
class QuantileHuberLoss(Loss):
  """Predicted particles are quantiles at their levels, or at even ones.

  Attributes:
    kappa: 1 for QR-DQN-1, IQN and FQF; 0 for QR-DQN-0.
    even_targets: whether the target's particles count alike, whatever their
      weights.
  """

  kappa: float = 1.0
  even_targets: bool = False

  def __post_init__(self):
    if not self.kappa >= 0:
      raise errors.UserError(f"kappa must be at least 0, got {self.kappa}")

  @property
  def heeds_weights(self) -> bool:  # type: ignore[override]
    """Not if all particles of a target count alike."""
    return not self.even_targets

  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[B] losses of predicted [B, N] against target [B, M] distributions."""
    del step
    levels = predicted.levels
    even = self.even_targets or target.log_weights is None
    if levels is None:
      levels = quantiles.midpoints(predicted.values.shape[-1])
    return quantiles.quantile_huber(
      predicted.values,
      levels,
      target.values,
      kappa=self.kappa,
      target_weights=None if even else target.weights(),
    )
