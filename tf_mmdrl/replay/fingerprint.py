"""A short name for the whole content of a replay."""

import hashlib
import json

import numpy as np

from tf_mmdrl.replay.frame_replay_buffer import FrameReplayBuffer

_AT_ONCE = 4096


def fingerprint(buffer: FrameReplayBuffer) -> str:
  """A SHA-256 over all that decides what a buffer will do next.

  Equal for buffers with equal steps, priorities, generator and counts, whether
  they were restored or never saved.

  Args:
    buffer: the buffer.

  Returns:
    64 hexadecimal digits.
  """
  replay, sha = buffer.replay, hashlib.sha256()
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
  return sha.hexdigest()


def _update(sha, ring: np.ndarray, start: int, stop: int) -> None:
  """Adds the [start, stop) entries of a [length, ...] ring."""
  for begin in range(start, stop, _AT_ONCE):
    end = min(begin + _AT_ONCE, stop)
    sha.update(ring[np.arange(begin, end) % len(ring)].data)
