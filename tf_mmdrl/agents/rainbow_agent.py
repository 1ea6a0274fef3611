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
)
