"""Policies over return distributions; all are TF-Agents policies."""

from tf_mmdrl.policies import scores
from tf_mmdrl.policies.return_policy import ReturnPolicy, exploring, greedy

__all__ = ["ReturnPolicy", "exploring", "greedy", "scores"]
