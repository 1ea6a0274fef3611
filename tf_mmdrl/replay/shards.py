"""Several shards laid end to end, so that they are drawn from as one."""

from typing import Any, Iterator, Sequence, Tuple

import numpy as np


def edges(sizes: Sequence[float]) -> np.ndarray:
  """[S + 1] where each of S shards begins, and the end of the last."""
  return np.cumsum([0, *sizes])


def owners(bounds: np.ndarray, points: np.ndarray) -> np.ndarray:
  """The shards in which points lie; a shard of size 0 has none.

  Args:
    bounds: [S + 1] of `edges`.
    points: [...], at least 0 and below the last of the bounds.

  Returns:
    [...] indices below S.
  """
  if len(bounds) == 2:
    return np.zeros(points.shape, np.int64)
  return np.searchsorted(bounds[1:], points, side="right")


def parts(owned: np.ndarray, num_shards: int) -> Iterator[Tuple[int, Any]]:
  """Each shard that occurs in `owned`, and an index of where it does."""
  if num_shards == 1:
    yield 0, ...
    return
  for shard in range(num_shards):
    where = np.nonzero(owned == shard)
    if where[0].size:
      yield shard, where
