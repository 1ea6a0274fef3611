"""Environments for TF-Agents: any Gymnasium environment."""

from tf_mmdrl.environments.gymnasium_wrapper import GymnasiumWrapper, load
from tf_mmdrl.environments.spaces import spec_from_space

__all__ = ["GymnasiumWrapper", "load", "spec_from_space"]
