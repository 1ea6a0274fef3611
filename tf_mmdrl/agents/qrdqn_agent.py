"""QR-DQN: Dabney et al., "Distributional Reinforcement Learning with Quantile
Regression", 2018; Algorithm 1.
"""

import dataclasses
from typing import Any, Dict

from tf_mmdrl.agents import base, checks
from tf_mmdrl.core import algorithms, settings
from tf_mmdrl.losses import QuantileHuberLoss
from tf_mmdrl.networks import heads


class QRDQNAgent(base.ReturnDistributionAgent):
  """Learns N quantiles per action at even levels.

  Head: `heads.particles`.
  """

  def __init__(self, *args, kappa: float = 1.0, **options):
    """Makes the agent.

    Args:
      *args: those of the base class.
      kappa: the kappa of the Huber loss: 1 for QR-DQN-1, 0 for QR-DQN-0.
      **options: those of the base class.
    """
    super().__init__(*args, loss=QuantileHuberLoss(kappa), **options)

  def _check_network(self, net):
    checks.check_atoms(
      net, type(self).__name__, self.network_example, wanted=False
    )


def kappa_setting() -> Any:
  """The setting `kappa` of all that regress quantiles."""
  return settings.setting(
    1.0,
    "error at which the quantile Huber loss goes from a parabola to a line, in"
    " units of return; 0: a line all the way",
    low=0,
  )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """The shape of the loss."""

  kappa: float = kappa_setting()

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """A head of N particles for each action."""
    return heads.particles(run.num_particles)

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """The loss's kappa."""
    del run
    return {"kappa": self.kappa}


# QR-DQN-1, the section on Atari; schedules are DQN's, in agent steps. IQN and
# FQF took all of it over but for the number of particles.
PUBLISHED = {
  "agent.kappa": 1.0,
  "network.padding": "valid",
  "network.num_particles": 200,
  "optimizer.learning_rate": 5e-5,
  "optimizer.epsilon": 0.01 / 32,
  "schedule.learning_starts": 50_000,
  "schedule.target_period": 10_000,
  "schedule.epsilon_end": 0.01,
  "evaluation.epsilon": 0.001,
}

ALGORITHM = algorithms.Algorithm(
  summary="quantiles at even levels by quantile regression",
  paper="Dabney, Rowland, Bellemare and Munos, 2018",
  url="https://arxiv.org/abs/1710.10044",
  agent=QRDQNAgent,
  settings=Settings,
  published=PUBLISHED,
)
