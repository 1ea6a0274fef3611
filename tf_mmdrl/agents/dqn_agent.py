"""DQN: Mnih et al., "Human-level Control through Deep Reinforcement Learning",
2015; with `double=True`, van Hasselt et al., 2016.
"""

import tensorflow as tf

from tf_mmdrl.agents import base
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import quantiles


class DQNAgent(base.ReturnDistributionAgent):
  """Learns the expected return of each action, as one particle.

  Head: `heads.particles(1)`. The arguments are those of the base class.
  """

  network_example = "ParticleNetwork(..., num_particles=1)"

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    # The means: the target has several particles under a soft policy.
    return quantiles.huber(target.mean() - predicted.mean(), kappa=1.0)
