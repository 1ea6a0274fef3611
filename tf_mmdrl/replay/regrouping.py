"""The same replay in another number of shards.

What replay has of an environment is a row of a shard. Rows are copied as they
are; those that come together in a shard may have had different numbers of
steps, and are counted anew so that all of them end with the same one.
"""

from typing import Any, Dict, Iterable, List

import numpy as np

from tf_mmdrl.replay.frame_replay import FrameReplay
from tf_mmdrl.replay.frame_replay_buffer import FrameReplayBuffer
from tf_mmdrl.replay.frame_store import FrameStore
from tf_mmdrl.replay.sharded_replay import ShardedReplay


def regroup(
  target: ShardedReplay, source: Iterable[FrameReplayBuffer], head: int
) -> None:
  """Fills shards with the rows of others, in their order.

  Args:
    target: with as many rows in all as `source`; emptied first.
    source: shards in turn; the generator of the first one draws on.
    head: steps ever added to an environment, the largest number of `source`.
  """
  replays = [shard.replay for shard in target.shards]
  for one in replays:
    one.clear()
  places = iter(
    [(one, row) for one in replays for row in range(one.store.batch_size)]
  )
  weights = [np.zeros(_shape(one.store), np.float32) for one in replays]
  known: List[Dict[str, Any]] = []
  for part in source:
    scalars, tables = part.replay.sampler.state()
    if not known:
      target.generator.bit_generator.state = (
        part.replay.generator.bit_generator.state
      )
    known.append(scalars)
    store = part.replay.store
    theirs = tables["weights"].reshape(_shape(store)) if tables else None
    for row in range(store.batch_size):
      one, own = next(places)
      moved = head - store.head
      _copy_row(one.store, own, store, row, moved)
      if theirs is not None:
        weights[replays.index(one)][own] = np.roll(theirs[row], moved)
  scalars = dict(known[0])
  if "largest" in scalars:
    scalars["largest"] = max(one["largest"] for one in known)
  for one, own_weights in zip(replays, weights):
    _finish(one, head, scalars, own_weights)


def _copy_row(
  store: FrameStore, own: int, other: FrameStore, row: int, moved: int
) -> None:
  """Copies a row whose steps are counted from `moved` on."""
  for ring, theirs in zip(store.rings, other.rings):
    if ring is not None:
      ring[own] = np.roll(theirs[row], moved, axis=0)
  store.oldest[own] = other.oldest[row] + moved
  if store.stacked is not None:
    store.frames[own] = other.frames[row]
    store.frame_heads[own] = other.frame_heads[row]
    store.newest[own] = np.roll(other.newest[row], moved)


def _finish(
  one: FrameReplay, head: int, scalars: Dict[str, Any], weights: np.ndarray
) -> None:
  one.store.head = head
  one.store.watch_last()
  one.reopen()
  one.sampler.set_state(scalars, {"weights": weights.reshape([-1])})


def _shape(store: FrameStore) -> List[int]:
  return [store.batch_size, store.max_length]
