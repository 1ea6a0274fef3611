"""Several shards laid end to end, so that they are drawn from as one."""

from typing import Any, Callable, List, Sequence, Tuple

import numpy as np

from tf_mmdrl.replay import arrays


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


def parts(owned: np.ndarray, num_shards: int) -> List[Tuple[int, Any]]:
  """Each shard that occurs in `owned`, and an index of where it does."""
  if num_shards == 1:
    return [(0, ...)]
  where = [np.nonzero(owned == shard) for shard in range(num_shards)]
  return [(shard, at) for shard, at in enumerate(where) if at[0].size]


def put_together(
  owned: np.ndarray,
  num_shards: int,
  function: Callable[[int, Any], Sequence[np.ndarray]],
) -> Sequence[np.ndarray]:
  """Asks each shard for what is its own.

  Args:
    owned: [...] the shard that each place belongs to.
    num_shards: S. If there is one, its answer is handed on without a copy.
    function: (a shard, an index of its places) -> arrays, for these places.

  Returns:
    The arrays, [..., ...] for all places.
  """
  if num_shards == 1:
    return function(0, ...)
  out: List[np.ndarray] = []
  for shard, where in parts(owned, num_shards):
    answer = function(shard, where)
    if not out:
      out = [
        arrays.empty([*owned.shape, *a.shape[1:]], a.dtype) for a in answer
      ]
    for everywhere, part in zip(out, answer, strict=True):
      everywhere[where] = part
  return out
