"""Environments for TF-Agents: Gymnasium, Atari, MinAtar and the chain."""

from typing import TYPE_CHECKING

from tf_mmdrl.core import lazy
from tf_mmdrl.environments.names import family

if TYPE_CHECKING:
  from tf_mmdrl.environments.environment import Environment
  from tf_mmdrl.environments.gymnasium_wrapper import GymnasiumWrapper, load
  from tf_mmdrl.environments.making import make_environment
  from tf_mmdrl.environments.spaces import spec_from_space

__all__ = [
  "Environment",
  "GymnasiumWrapper",
  "family",
  "load",
  "make_environment",
  "spec_from_space",
]

# What needs TensorFlow is loaded when it is asked for.
__getattr__ = lazy.attributes(
  __name__,
  {
    "Environment": "environment",
    "GymnasiumWrapper": "gymnasium_wrapper",
    "load": "gymnasium_wrapper",
    "make_environment": "making",
    "spec_from_space": "spaces",
  },
)
