"""Environments for TF-Agents: Gymnasium, Atari, MinAtar and the chain."""

from tf_mmdrl.environments.base import Environment
from tf_mmdrl.environments.gymnasium_wrapper import GymnasiumWrapper, load
from tf_mmdrl.environments.spaces import spec_from_space

__all__ = [
  "Environment",
  "GymnasiumWrapper",
  "load",
  "spec_from_space",
]
