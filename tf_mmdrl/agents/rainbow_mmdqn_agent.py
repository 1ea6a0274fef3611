"""Rainbow with MMDQN in C51's place: prioritised by the MMD."""

from tf_mmdrl.agents import mmdqn_agent, rainbow_agent
from tf_mmdrl.core import algorithms

ALGORITHM = algorithms.Algorithm(
  summary="MMDQN, double, dueling, prioritised by MMD, n-step and noisy",
  paper=f"{mmdqn_agent.ALGORITHM.paper}, and Hessel et al., 2018",
  url=mmdqn_agent.ALGORITHM.url,
  agent=mmdqn_agent.MMDQNAgent,
  settings=mmdqn_agent.Settings,
  # An action's particles share their noise, so less of it explores as much.
  shared={**rainbow_agent.PARTS, "network.noise": 0.1},
)
