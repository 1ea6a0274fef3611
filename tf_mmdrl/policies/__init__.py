"""Policies over return distributions; all are TF-Agents policies."""

from tf_mmdrl.policies import scores, utilities
from tf_mmdrl.policies.player import ArrayPlayer, Player
from tf_mmdrl.policies.return_policy import ReturnPolicy

__all__ = ["ArrayPlayer", "Player", "ReturnPolicy", "scores", "utilities"]
