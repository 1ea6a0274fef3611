"""DQN: Mnih et al., "Human-level Control through Deep Reinforcement Learning",
2015.
"""

import dataclasses

from tf_mmdrl.agents import base
from tf_mmdrl.core import algorithms, errors
from tf_mmdrl.losses import HuberLoss
from tf_mmdrl.networks import heads


class DQNAgent(base.ReturnDistributionAgent):
  """Learns the expected return of each action, as one particle.

  Head: `heads.particles(1)`.
  """

  network_example = "ParticleNetwork(..., num_particles=1)"

  def __init__(self, *args, **options):
    """Makes the agent.

    Args:
      *args: those of the base class.
      **options: those of the base class; `double=True` is Double DQN.
    """
    super().__init__(*args, loss=HuberLoss(), **options)


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """DQN has none of its own."""

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """One particle for each action."""
    if run.num_particles != 1:
      raise errors.UserError(
        "DQN learns one number for each action, got network.num_particles="
        f"{run.num_particles}; set it to 1"
      )
    return heads.particles(1)


# Extended Data Table 1. Its optimizer is RMSProp, which divides the sum of a
# batch's gradients by sqrt(variance + 0.01); Adam divides their mean by
# sqrt(second moment) + epsilon, so that the same constant is sqrt(0.01) / 32.
PUBLISHED = {
  "network.padding": "valid",
  "network.num_particles": 1,
  "optimizer.learning_rate": 2.5e-4,
  "optimizer.epsilon": 0.1 / 32,
  "schedule.learning_starts": 50_000,
  "schedule.target_period": 10_000,
  "schedule.epsilon_end": 0.1,
  "evaluation.epsilon": 0.05,
}

ALGORITHM = algorithms.Algorithm(
  summary="expected returns by Q-learning",
  paper="Mnih et al., 2015",
  url="https://www.nature.com/articles/nature14236",
  agent=DQNAgent,
  settings=Settings,
  shared={"network.num_particles": 1},
  published=PUBLISHED,
)
