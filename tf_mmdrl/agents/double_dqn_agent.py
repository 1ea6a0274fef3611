"""Double DQN: van Hasselt, Guez and Silver, "Deep Reinforcement Learning with
Double Q-learning", 2016.
"""

from tf_mmdrl.agents import dqn_agent
from tf_mmdrl.core import algorithms

ALGORITHM = algorithms.Algorithm(
  summary="DQN whose online network chooses the target's action",
  paper="van Hasselt, Guez and Silver, 2016",
  url="https://arxiv.org/abs/1509.06461",
  agent=dqn_agent.DQNAgent,
  settings=dqn_agent.Settings,
  shared={**dqn_agent.ALGORITHM.shared, "agent.double": True},
  # "Double DQN"; the page has what its "Double DQN (tuned)" changes.
  published={**dqn_agent.PUBLISHED, "agent.double": True},
)
