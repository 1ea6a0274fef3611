"""Agents; each is a TF-Agents agent.

Those that are not named here are found by `__getattr__`: an algorithm's file is
all that an algorithm needs.
"""

from typing import Any

from tf_mmdrl.agents.adversarial_mmdqn_agent import AdversarialMMDQNAgent
from tf_mmdrl.agents.c51_agent import C51Agent
from tf_mmdrl.agents.dqn_agent import DQNAgent
from tf_mmdrl.agents.fqf_agent import FQFAgent
from tf_mmdrl.agents.implicit_mmdqn_agent import ImplicitMMDQNAgent
from tf_mmdrl.agents.iqn_agent import IQNAgent
from tf_mmdrl.agents.joint_mmdqn_agent import JointMMDQNAgent
from tf_mmdrl.agents.mmdqn_agent import MMDQNAgent
from tf_mmdrl.agents.predicting import Samples
from tf_mmdrl.agents.qrdqn_agent import QRDQNAgent
from tf_mmdrl.agents.targets import Munchausen
from tf_mmdrl.core import algorithms

__all__ = [
  "AdversarialMMDQNAgent",
  "C51Agent",
  "DQNAgent",
  "FQFAgent",
  "ImplicitMMDQNAgent",
  "IQNAgent",
  "JointMMDQNAgent",
  "MMDQNAgent",
  "Munchausen",
  "QRDQNAgent",
  "Samples",
]


def __getattr__(name: str) -> Any:
  """The class of that name of one of this library's algorithms."""
  if name.endswith("Agent"):  # no module, and none of Python's own questions
    for algorithm in map(algorithms.get, algorithms.our_names()):
      if getattr(algorithm.agent, "__name__", None) == name:
        return algorithm.agent
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
