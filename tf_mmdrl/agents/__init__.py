"""Agents; each is a TF-Agents agent."""

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
