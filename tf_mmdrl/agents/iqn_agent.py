"""IQN: Dabney et al., "Implicit Quantile Networks for Distributional
Reinforcement Learning", 2018.
"""

import dataclasses
from typing import Any, Dict, Optional

from tf_mmdrl.agents import base, qrdqn_agent
from tf_mmdrl.agents.predicting import Samples
from tf_mmdrl.core import algorithms, settings
from tf_mmdrl.losses import QuantileHuberLoss
from tf_mmdrl.networks import heads, implicit_heads


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
      kappa: the kappa of the Huber loss, equation 3.
      **options: those of the base class.
    """
    super().__init__(
      *args,
      loss=QuantileHuberLoss(kappa),
      samples=samples or Samples(),
      **options,
    )


@dataclasses.dataclass(frozen=True)
class Drawn(algorithms.Settings):
  """Settings of heads that draw particles; N is network.num_particles."""

  target_particles: int = settings.setting(
    64, "N': how many particles are drawn for the target of an update", low=1
  )
  choice_particles: int = settings.setting(
    32,
    "K: how many particles are averaged to choose an action, in play and in"
    " the target of an update",
    low=1,
  )
  embedding: int = settings.setting(
    64,
    "how many numbers, cosines if it is uniform, a random draw is turned into"
    " before it enters the network",
    low=1,
  )

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """How many particles to draw for what."""
    drawn = (run.num_particles, self.target_particles, self.choice_particles)
    return {"samples": Samples(*drawn)}


@dataclasses.dataclass(frozen=True)
class Settings(Drawn):
  """How many particles are drawn, and the loss's kappa."""

  kappa: float = qrdqn_agent.kappa_setting()

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """Particles at random levels."""
    del run
    return implicit_heads.implicit(
      self.choice_particles, embedding=self.embedding
    )

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """How many particles to draw for what, and the loss's kappa."""
    return {**super().options(run), "kappa": self.kappa}


ALGORITHM = algorithms.Algorithm(
  summary="the quantile function at random levels",
  paper="Dabney, Ostrovski, Silver and Munos, 2018",
  url="https://arxiv.org/abs/1806.06923",
  agent=IQNAgent,
  settings=Settings,
  shared={"network.num_particles": 64},
  published={  # QR-DQN's; K and n are Section 3.1's, N and N' Dopamine's
    **qrdqn_agent.PUBLISHED,
    "network.num_particles": 64,
    "agent.target_particles": 64,
    "agent.choice_particles": 32,
    "agent.embedding": 64,
  },
)
