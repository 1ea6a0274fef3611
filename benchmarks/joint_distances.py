"""How far samples of vectors are apart: four numbers."""

from typing import Callable, Dict, Sequence

import numpy as np

from tf_mmdrl.report import joint_figures

_DIRECTIONS = 64
_BLOCK = 500  # rows of pairs in memory at a time
_KERNELS: Dict[str, Callable[[np.ndarray], np.ndarray]] = {
  "energy": lambda d2: -np.sqrt(d2),
  "mmd": lambda d2: np.exp(-d2 / 0.1),
}


def independent(parts: Sequence[np.ndarray], seed: int) -> np.ndarray:
  """[K, D] vectors whose parts have given marginals and no dependence."""
  rng = np.random.default_rng(seed)
  return np.stack([rng.permutation(part) for part in parts], axis=1)


class Reference:
  """A sample y [L, D] that was played, from which distances are measured."""

  def __init__(self, y: np.ndarray):
    """Computes what does not depend on the other sample."""
    self.sample = y
    self._own = {name: _mean(y, y, k) for name, k in _KERNELS.items()}

  def distances(self, x: np.ndarray) -> Dict[str, float]:
    """Distances of a sample x [K, D] that was learnt.

    Args:
      x: what was learnt.

    Returns:
      `sliced_w1`, the mean over 64 fixed directions of the 1-Wasserstein
      distance; `energy`, the squared energy distance; `mmd`, the squared MMD of
      a Gaussian with the bandwidth 0.1; `correlation`, the largest error of
      one.
    """
    y = self.sample
    errors = [
      abs(
        joint_figures.correlation(x, *pair)
        - joint_figures.correlation(y, *pair)
      )
      for pair in joint_figures.pairs(y.shape[1])
    ]
    found = {"sliced_w1": sliced_w1(x, y)}
    for name, kernel in _KERNELS.items():  # all pairs (biased)
      mean = _mean(x, x, kernel) - 2 * _mean(x, y, kernel)
      found[name] = mean + self._own[name]
    return {**found, "correlation": max(errors)}


def sliced_w1(x: np.ndarray, y: np.ndarray) -> float:
  """The mean 1-Wasserstein distance of projections."""
  rng = np.random.default_rng(0)
  directions = rng.normal(size=[_DIRECTIONS, y.shape[1]])
  directions /= np.linalg.norm(directions, axis=1, keepdims=True)
  return float(np.mean([w1(x @ way, y @ way) for way in directions]))


def w1(x: np.ndarray, y: np.ndarray) -> float:
  """The 1-Wasserstein distance of two samples of numbers, exactly."""
  both = np.sort(np.concatenate([x, y]))
  below_x = np.searchsorted(np.sort(x), both[:-1], side="right") / len(x)
  below_y = np.searchsorted(np.sort(y), both[:-1], side="right") / len(y)
  return float(np.sum(np.abs(below_x - below_y) * np.diff(both)))


def _mean(x: np.ndarray, y: np.ndarray, kernel) -> float:
  total = 0.0
  for start in range(0, len(x), _BLOCK):
    rows = x[start : start + _BLOCK, np.newaxis]
    total += float(kernel(((rows - y) ** 2).sum(axis=2)).sum())
  return total / (len(x) * len(y))
