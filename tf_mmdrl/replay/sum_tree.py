"""A sum tree: drawing in proportion to weights, a whole batch at a time."""

from typing import List, Tuple, Union

import numpy as np

# Wide nodes keep the tree flat: four levels for a million leaves, each level a
# handful of NumPy calls on `[count, 64]` arrays.
_WIDTH = 64


class SumTree:
  """Non-negative weights that can be set and drawn in batches.

  `levels[0]` holds the weights, padded with zeros; an entry of each further
  level is the sum of 64 neighbours in the level below. A sum is always taken
  anew from its 64 parts, so errors do not pile up, and equal weights give
  equal sums whatever the history.

  Attributes:
    size: the number of leaves.
  """

  def __init__(self, size: int):
    self.size = size
    self._levels: List[np.ndarray] = []
    length = size
    while True:
      length = -(-length // _WIDTH)
      # float32 weights: half the memory and half of each checkpoint.
      dtype = np.float64 if self._levels else np.float32
      self._levels.append(np.zeros([length, _WIDTH], dtype))
      if length == 1:
        break

  @property
  def total(self) -> float:
    """The sum of all weights."""
    return float(self._levels[-1].sum(dtype=np.float64))

  @property
  def leaves(self) -> np.ndarray:
    """[size] float32, a view of the weights."""
    return self._levels[0].reshape([-1])[: self.size]

  @property
  def nbytes(self) -> int:
    """Bytes of all levels."""
    return sum(level.nbytes for level in self._levels)

  def set(self, indices: np.ndarray, weights: Union[float, np.ndarray]) -> None:
    """Sets weights; of repeated indices the last counts.

    Args:
      indices: [count] leaves.
      weights: [count] or scalar, not negative.
    """
    self.leaves[indices] = weights
    for below, level in zip(self._levels, self._levels[1:]):
      indices = indices // _WIDTH
      level.reshape([-1])[indices] = below[indices].sum(
        axis=1, dtype=np.float64
      )

  def set_all(self, weights: np.ndarray) -> None:
    """Sets all leaves at once; [size] weights."""
    self.leaves[:] = weights
    for below, level in zip(self._levels, self._levels[1:]):
      level.reshape([-1])[: len(below)] = below.sum(axis=1, dtype=np.float64)

  def find(self, points: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The leaves in which points of the cumulated weights lie.

    Args:
      points: [count] in [0, total).

    Returns:
      [count] leaves, never one of weight zero while any weight is positive,
      and their [count] weights.
    """
    nodes = np.zeros(points.shape, np.int64)
    picked = np.arange(points.size)
    for level in reversed(self._levels):
      sums = np.cumsum(level[nodes], axis=1, dtype=np.float64)
      # Rounding may push a point past the node's end: back to the last part.
      points = np.minimum(points, np.nextafter(sums[:, -1], 0))
      child = (sums <= points[:, None]).sum(axis=1)
      points = points - np.where(child > 0, sums[picked, child - 1], 0.0)
      nodes = nodes * _WIDTH + child
    return nodes, self.leaves[nodes]
