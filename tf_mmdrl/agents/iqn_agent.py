"""IQN: Dabney et al., "Implicit Quantile Networks for Distributional
Reinforcement Learning", 2018.
"""

from typing import Optional

import tensorflow as tf

from tf_mmdrl.agents import base
from tf_mmdrl.agents.predicting import Samples
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import QuantileHuberLoss


class IQNAgent(base.ReturnDistributionAgent):
  """Learns the quantile function of each action's return at random levels.

  Head: `implicit_heads.implicit`, with a uniform base. Policies take even
  levels where the paper draws them: the same expectation, with less noise.
  """

  network_example = "ReturnNetwork(..., implicit_heads.implicit(32))"

  def __init__(
    self,
    *args,
    samples: Optional[Samples] = None,
    kappa: float = 1.0,
    **options,
  ):
    """Makes the agent.

    Args:
      *args: those of the base class.
      samples: N, N' and K; 64, 64 and 32 if None.
      kappa: of the Huber loss.
      **options: those of the base class.
    """
    self._quantile_loss = QuantileHuberLoss(kappa)
    super().__init__(*args, samples=samples or Samples(), **options)

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    return self._quantile_loss(predicted, target)  # equation 3
