"""Plays whole games with a policy, and scores them."""

from tf_mmdrl.evaluation.episode_returns import episode_returns
from tf_mmdrl.evaluation.evaluator import Evaluation, Evaluator

__all__ = ["Evaluation", "Evaluator", "episode_returns"]
