"""A short name for the whole content of a replay."""

import hashlib
import json

import numpy as np

from tf_mmdrl.replay.frame_replay import FrameReplay
from tf_mmdrl.replay.frame_replay_buffer import FrameReplayBuffer

_AT_ONCE = 4096


def fingerprint(*buffers: FrameReplayBuffer) -> str:
  """A SHA-256 over all that decides what buffers will do next.

  Equal for buffers with equal steps, priorities, generators and counts, whether
  they were restored or never saved.

  Args:
    *buffers: one, or the shards of a replay.

  Returns:
    64 hexadecimal digits.
  """
  sha = hashlib.sha256()
  for buffer in buffers:
    _add(sha, buffer.replay)
  return sha.hexdigest()


def _add(sha, replay: FrameReplay) -> None:
  """Adds all of one replay."""
  with replay.lock:
    store = replay.store
    scalars, tables = replay.sampler.state()
    state = [store.head, scalars, replay.generator.bit_generator.state]
    sha.update(json.dumps(state, sort_keys=True).encode())
    for table in (store.oldest, *tables.values()):
      sha.update(np.ascontiguousarray(table).data)
    for row, oldest in enumerate(store.oldest.tolist()):
      for ring in store.rings:
        if ring is not None:
          _update(sha, ring[row], oldest, store.head)
      if store.stacked is not None and oldest < store.head:
        _update(sha, store.newest[row], oldest, store.head)
        first = int(store.newest[row, oldest % store.max_length])
        end = int(store.frame_heads[row])
        _update(sha, store.frames[row], first - store.stack + 1, end)


def _update(sha, ring: np.ndarray, start: int, stop: int) -> None:
  """Adds the [start, stop) entries of a [length, ...] ring."""
  for begin in range(start, stop, _AT_ONCE):
    end = min(begin + _AT_ONCE, stop)
    sha.update(ring[np.arange(begin, end) % len(ring)].data)
