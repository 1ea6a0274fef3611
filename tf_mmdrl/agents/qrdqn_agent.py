"""QR-DQN: Dabney et al., "Distributional Reinforcement Learning with Quantile
Regression", 2018; Algorithm 1.
"""

import tensorflow as tf

from tf_mmdrl.agents import base
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import QuantileHuberLoss


class QRDQNAgent(base.ReturnDistributionAgent):
  """Learns N quantiles per action at even levels.

  Head: `heads.particles`.
  """

  def __init__(self, *args, kappa: float = 1.0, **options):
    """Makes the agent.

    Args:
      *args: those of the base class.
      kappa: of the Huber loss: 1 for QR-DQN-1, 0 for QR-DQN-0.
      **options: those of the base class.
    """
    self._quantile_loss = QuantileHuberLoss(kappa)
    super().__init__(*args, **options)

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    return self._quantile_loss(predicted, target)
