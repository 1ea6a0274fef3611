"""Agents; each is a TF-Agents agent."""

from tf_mmdrl.agents.mmdqn_agent import MMDQNAgent

__all__ = ["MMDQNAgent"]
