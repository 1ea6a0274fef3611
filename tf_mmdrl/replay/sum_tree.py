"""A sum tree: drawing in proportion to weights, a whole batch at a time."""

from typing import Tuple, Union

import numpy as np

# A tree of two levels. For a million leaves the upper one has 8,000 sums, which
# NumPy adds up faster than it walks down two levels more.
_WIDTH = 128


class SumTree:
  """Non-negative weights that can be set and drawn in batches.

  A block is 128 neighbouring leaves, padded with zeros. Its sum is always taken
  anew from its parts, so errors do not pile up, and equal weights give equal
  sums whatever the history.

  Attributes:
    size: the number of leaves.
    leaves: [size] float32, a view of the weights.
  """

  def __init__(self, size: int):
    self.size = size
    count = -(-size // _WIDTH)
    # float32 weights: half the memory and half of each checkpoint.
    self._blocks = np.zeros([count, _WIDTH], np.float32)
    self._sums = np.zeros([count])
    self.leaves = self._blocks.reshape([-1])[:size]

  @property
  def total(self) -> float:
    """The sum of all weights."""
    return float(self._sums.sum())

  @property
  def nbytes(self) -> int:
    """Bytes of leaves and sums."""
    return self._blocks.nbytes + self._sums.nbytes

  def set(self, indices: np.ndarray, weights: Union[float, np.ndarray]) -> None:
    """Sets weights; of repeated indices the last counts.

    Args:
      indices: [count] leaves.
      weights: [count] or scalar, not negative.
    """
    self.leaves[indices] = weights
    blocks = indices // _WIDTH
    self._sums[blocks] = self._blocks[blocks].sum(axis=1, dtype=np.float64)

  def set_all(self, weights: np.ndarray) -> None:
    """Sets all leaves at once; [size] weights."""
    self.leaves[:] = weights
    self._blocks.sum(axis=1, dtype=np.float64, out=self._sums)

  def find(self, points: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """The leaves in which points of the cumulated weights lie.

    Args:
      points: [count] in [0, total).

    Returns:
      [count] leaves, never one of weight zero while any weight is positive,
      and their [count] weights.
    """
    edges = np.zeros([len(self._sums) + 1])
    np.cumsum(self._sums, out=edges[1:])
    # Rounding may push a point past an end: back to the last part before it.
    points = np.minimum(points, np.nextafter(edges[-1], 0))
    blocks = np.searchsorted(edges[1:], points, side="right")
    points = points - edges[blocks]
    sums = np.cumsum(self._blocks[blocks], axis=1, dtype=np.float64)
    points = np.minimum(points, np.nextafter(sums[:, -1], 0))
    found = blocks * _WIDTH + (sums <= points[:, np.newaxis]).sum(axis=1)
    return found, self.leaves[found]
