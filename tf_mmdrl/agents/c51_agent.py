"""C51: Bellemare, Dabney and Munos, "A Distributional Perspective on
Reinforcement Learning", 2017; Algorithm 1.
"""

import dataclasses

from tf_mmdrl.agents import base, checks
from tf_mmdrl.core import algorithms, settings
from tf_mmdrl.losses import CrossEntropyLoss
from tf_mmdrl.networks import heads


class C51Agent(base.ReturnDistributionAgent):
  """Learns the weights of fixed, evenly spaced returns.

  Head: `heads.categorical`.
  """

  network_example = "ReturnNetwork(..., heads.categorical(51))"
  _UNITS_OF_A_RETURN = 1.5  # at most 4, well within the usual atoms of +-10

  def __init__(self, *args, **options):
    """Makes the agent.

    Args:
      *args: those of the base class.
      **options: those of the base class.
    """
    super().__init__(*args, loss=CrossEntropyLoss(), **options)

  def _check_network(self, net):
    checks.check_atoms(
      net, type(self).__name__, self.network_example, wanted=True
    )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """Where the atoms lie."""

  v_min: float = settings.setting(
    -10.0, "return of the lowest atom, in units of return"
  )
  v_max: float = settings.setting(
    10.0, "return of the highest atom, in units of return"
  )

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """Atoms from v_min to v_max."""
    return heads.categorical(run.num_particles, self.v_min, self.v_max)


# Section 5; schedules are DQN's, in agent steps.
PUBLISHED = {
  "agent.v_min": -10.0,
  "agent.v_max": 10.0,
  "network.padding": "valid",
  "network.num_particles": 51,
  "optimizer.learning_rate": 2.5e-4,
  "optimizer.epsilon": 0.01 / 32,
  "schedule.learning_starts": 50_000,
  "schedule.target_period": 10_000,
  "schedule.epsilon_end": 0.01,
  "evaluation.epsilon": 0.001,
}

ALGORITHM = algorithms.Algorithm(
  summary="weights of 51 fixed returns by projection and cross-entropy",
  paper="Bellemare, Dabney and Munos, 2017",
  url="https://arxiv.org/abs/1707.06887",
  agent=C51Agent,
  settings=Settings,
  shared={"network.num_particles": 51},
  published=PUBLISHED,
)
