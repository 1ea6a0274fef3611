"""Scores of agents: one function for each statistic.

S is the number of seeds, G of games, F of points of a curve, E of evaluations.
Matrices of scores are human-normalised, 1 for human play.
"""

from typing import Optional

import numpy as np
import numpy.typing as npt

from tf_mmdrl.report import published

_TRIMMED = 0.25  # of the scores at either end, for the interquartile mean


def human_normalized(game: str, score: float) -> Optional[float]:
  """Appendix B: (score - random) / (human - random), 1 for human play.

  Args:
    game: the name of the game, in any spelling.
    score: the raw score.

  Returns:
    The normalised score, or None for a game without a reference.
  """
  scale = published.reference(game)
  return None if scale is None else scale.normalized(score)


def mean(scores: np.ndarray) -> np.ndarray:
  """The mean of all scores.

  Args:
    scores: [S, G, ...].

  Returns:
    [...].
  """
  return np.mean(scores, axis=(0, 1))


def median(scores: np.ndarray) -> np.ndarray:
  """The median over games of the mean over seeds.

  Args:
    scores: [S, G, ...].

  Returns:
    [...].
  """
  return np.median(np.mean(scores, axis=0), axis=0)


def iqm(scores: np.ndarray) -> np.ndarray:
  """The interquartile mean: of the middle half of all seeds' scores.

  Args:
    scores: [S, G, ...].

  Returns:
    [...].
  """
  seeds, games, *rest = scores.shape
  flat = np.sort(scores.reshape(seeds * games, *rest), axis=0)
  cut = int(_TRIMMED * len(flat))
  return np.mean(flat[cut : len(flat) - cut], axis=0)


def optimality_gap(scores: np.ndarray) -> np.ndarray:
  """By how much scores miss 1, human play; what exceeds it is not counted.

  Args:
    scores: [S, G, ...].

  Returns:
    [...]; less is better.
  """
  return 1 - np.mean(np.minimum(scores, 1), axis=(0, 1))


def profile(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
  """The share of scores above each threshold.

  Args:
    scores: [S, G].
    thresholds: [F].

  Returns:
    [F].
  """
  return np.mean(scores[..., np.newaxis] > thresholds, axis=(0, 1))


def probability_of_improvement(x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """How probably a run of X beats a run of Y in a game drawn at random.

  A tie counts one half. Scores need not be normalised: they are only compared
  within a game.

  Args:
    x: [S, G] scores of X.
    y: [T, G] scores of Y in the same games.

  Returns:
    The mean over games of P(X > Y) + P(X = Y) / 2, a number.
  """
  difference = x[:, np.newaxis] - y
  return np.mean((np.sign(difference) + 1) / 2)


def percentage_improvement(score: float, baseline: float) -> float:
  """Appendix B, of raw scores; nan over a baseline of 0, unless both are 0.

  The paper divides by the baseline. Below 0 that would call a better score a
  loss (IceHockey, Skiing), so it is divided by the baseline's size.
  """
  if score == baseline:
    return 0.0
  return 100 * (score - baseline) / abs(baseline) if baseline else np.nan


def log_percentage_improvement(
  improvement: npt.ArrayLike, *, losses: bool = False
) -> np.ndarray:
  """Appendix B: 1{p >= 0} log(|p| + 1).

  Args:
    improvement: p, in percent.
    losses: the formula as printed makes all losses 0. With this they are
      -log(|p| + 1), so that a figure can show them.

  Returns:
    The logarithms, shaped as `improvement`.
  """
  p = np.asarray(improvement, np.float64)
  below = -1.0 if losses else 0.0
  return np.where(p < 0, below, 1.0) * np.log1p(np.abs(p))


def best_evaluation(evaluations: np.ndarray) -> int:
  """Which evaluation was the best, the first if several were.

  Args:
    evaluations: [E] scores of one seed.

  Returns:
    Its index.
  """
  return int(np.argmax(evaluations))


def smooth(curve: np.ndarray, width: int) -> np.ndarray:
  """The mean over a sliding window that ends at each point.

  Args:
    curve: [..., F].
    width: the width of the window; at the start it is as wide as there are
      points.

  Returns:
    [..., F].
  """
  sums = np.cumsum(curve, axis=-1)
  late = np.concatenate(
    [np.zeros_like(sums[..., :width]), sums[..., :-width]], axis=-1
  )[..., : curve.shape[-1]]
  counts = np.minimum(np.arange(curve.shape[-1]) + 1, width)
  return (sums - late) / counts
