"""Scores, published tables, and reports of runs."""

from tf_mmdrl.report.results import Run
from tf_mmdrl.report.score_statistics import human_normalized

__all__ = ["Run", "human_normalized"]
