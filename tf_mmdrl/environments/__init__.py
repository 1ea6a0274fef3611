"""Environments for TF-Agents: Gymnasium, Atari, MinAtar and the chain."""

from tf_mmdrl.environments.environment import Environment
from tf_mmdrl.environments.gymnasium_wrapper import GymnasiumWrapper, load
from tf_mmdrl.environments.making import family, make_environment
from tf_mmdrl.environments.spaces import spec_from_space

__all__ = [
  "Environment",
  "GymnasiumWrapper",
  "family",
  "load",
  "make_environment",
  "spec_from_space",
]
