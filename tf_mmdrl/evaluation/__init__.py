"""Plays whole games with a policy, and scores them."""

from tf_mmdrl.evaluation.evaluator import Evaluation, Evaluator

__all__ = ["Evaluation", "Evaluator"]
