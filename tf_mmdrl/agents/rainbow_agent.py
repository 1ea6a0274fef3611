"""Rainbow: Hessel et al., "Rainbow: Combining Improvements in Deep
Reinforcement Learning", 2018. C51 with everything else switched on.
"""

from typing import Any, Dict

from tf_mmdrl.agents import c51_agent
from tf_mmdrl.core import algorithms

# Rainbow's parts but for the head: the noise explores, so epsilon is 0.
PARTS: Dict[str, Any] = {
  "agent.double": True,
  "agent.n_step": 3,
  "network.dueling": True,
  "network.noisy": True,
  "replay.prioritized": True,
  "schedule.epsilon_start": 0.0,
  "schedule.epsilon_end": 0.0,
}

ALGORITHM = algorithms.Algorithm(
  summary="C51, double, dueling, prioritised, n-step and noisy",
  paper="Hessel et al., 2018",
  url="https://arxiv.org/abs/1710.02298",
  agent=c51_agent.C51Agent,
  settings=c51_agent.Settings,
  shared={**c51_agent.ALGORITHM.shared, **PARTS},
  published={  # Table 1, whose frames are four to an agent step
    **PARTS,
    "agent.v_min": -10.0,
    "agent.v_max": 10.0,
    "network.padding": "valid",
    "network.num_particles": 51,
    "network.noise": 0.5,
    "replay.alpha": 0.5,
    "replay.beta_start": 0.4,
    "replay.beta_end": 1.0,
    "optimizer.learning_rate": 6.25e-5,
    "optimizer.epsilon": 1.5e-4,
    "schedule.learning_starts": 80_000 // 4,
    "schedule.target_period": 32_000 // 4,
    "evaluation.epsilon": 0.0,
  },
)
