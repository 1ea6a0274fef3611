"""Scores, published tables, and reports of runs."""

from tf_mmdrl.evaluation.results import Run
from tf_mmdrl.evaluation.scores import human_normalized

__all__ = ["Run", "human_normalized"]
