"""Replay in NumPy: rings, a sampler and a generator, and the rule of starts.

`drawing` draws from it.
"""

import threading
from typing import Callable, Iterator, List, Sequence

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay.frame_store import FrameStore
from tf_mmdrl.replay.samplers import Sampler

_AT_ONCE = 4096  # steps of a row; bounds the memory that a restore takes


def may_start(step_type: np.ndarray, discount: np.ndarray) -> np.ndarray:
  """Tells whether n-step samples are of use, from their first n steps.

  A sample that starts at the last step of an episode is masked out by every
  agent: a waste. One that runs over the end of an episode that was cut short
  (the discount there is not 0) would bootstrap from the next episode: an error
  that TF-Agents' n-step returns do not catch. Over a true end the discount of
  0 takes away all that follows, so those samples are good.

  Args:
    step_type: [..., n].
    discount: [..., n].

  Returns:
    [...] booleans.
  """
  last = step_type == ts.StepType.LAST
  cut_short = last[..., 1:] & (discount[..., :-1] != 0)
  return ~(last[..., 0] | cut_short.any(axis=-1))


class FrameReplay:
  """Replay of B environments' steps; the TF-Agents buffer is built on it.

  Every public method may be called from any thread.

  Attributes:
    store: the rings.
    sampler: what draws.
    generator: what drives the sampler.
    n_step: n; a sample has up to n + 1 steps.
  """

  def __init__(
    self,
    store: FrameStore,
    sampler: Callable[[int, int], Sampler],
    *,
    n_step: int,
    step_type: int,
    discount: int,
    seed: int,
  ):
    """Wraps an empty store.

    Args:
      store: the rings.
      sampler: makes a sampler, from B and L.
      n_step: n.
      step_type: the index of the field with the step type.
      discount: the index of the field with the discount.
      seed: seeds the generator.
    """
    self.store = store
    self.sampler = sampler(store.batch_size, store.max_length)
    self.generator = np.random.Generator(np.random.PCG64(seed))
    self.n_step = n_step
    self.lock = threading.RLock()
    self._step_types = store.rings[step_type]
    self._discounts = store.rings[discount]

  @property
  def num_steps(self) -> int:
    """Steps kept, over all environments."""
    with self.lock:
      return int((self.store.head - self.store.oldest).sum())

  @property
  def num_filled(self) -> int:
    """How many of an environment's places were ever used: the first ones."""
    return min(self.store.head, self.store.max_length)

  def add(self, steps: Sequence[Sequence[np.ndarray]]) -> None:
    """Adds steps of every environment; each a [B, ...] array per field."""
    with self.lock:
      head, before = self.store.head, self.store.oldest.copy()
      self.store.add(steps)
      self._close_left(before)
      self._open_complete(head - self.n_step)

  def ids(self, slots: np.ndarray) -> np.ndarray:
    """The ids of the steps that slots hold now; see `samplers`."""
    rows, places = np.divmod(slots, self.store.max_length)
    newest = self.store.head - 1
    steps = newest - (newest - places) % self.store.max_length
    return steps * self.store.batch_size + rows

  def read(
    self, ids: np.ndarray, num_steps: int, *, ends: bool = False
  ) -> List[np.ndarray]:
    """Reads the sequences that start at ids.

    Args:
      ids: [...] first steps.
      num_steps: T.
      ends: whether stacked ones are those of the first and last step alone.

    Returns:
      A [..., T, ...] array for each field, stacked ones as planes.
    """
    with self.lock:
      steps, rows = np.divmod(ids, self.store.batch_size)
      if (steps < self.store.oldest[rows]).any():
        raise UserError(
          "wanted steps that newer ones have replaced meanwhile; read them"
          " before adding more, or make max_length larger"
        )
      times = steps[..., None] + np.arange(num_steps)
      return self.store.read(
        np.broadcast_to(rows[..., None], times.shape), times, ends=ends
      )

  def sequences(self, num_steps: int) -> np.ndarray:
    """[count] ids of all neighbouring, complete sequences, oldest first.

    Args:
      num_steps: T; what is left over at the end makes no sequence.
    """
    with self.lock:
      head, rows = self.store.head, self.store.batch_size
      return np.concatenate(
        [
          np.arange(oldest, head - num_steps + 1, num_steps) * rows + row
          for row, oldest in enumerate(self.store.oldest)
        ]
      )

  def update_priorities(self, ids: np.ndarray, priorities: np.ndarray) -> None:
    """Sets priorities; samples whose step has left since are passed over.

    Args:
      ids: [count] as drawn.
      priorities: [count], finite and not negative.
    """
    bad = ~(np.isfinite(priorities) & (priorities >= 0))
    if bad.any():
      at = int(np.flatnonzero(bad)[0])
      raise UserError(
        "priorities must be finite and not negative, got"
        f" {priorities[at]} at index {at}; pass the size of the error, and"
        " look for NaN in the loss"
      )
    with self.lock:
      steps, rows = np.divmod(ids, self.store.batch_size)
      known = (steps >= 0) & (steps < self.store.head - self.n_step)
      if not known.all():
        at = int(np.flatnonzero(~known)[0])
        raise UserError(
          f"ids must come from a sample of this replay, got {ids[at]} at"
          f" index {at}; pass BufferInfo.ids"
        )
      here = steps >= self.store.oldest[rows]
      slots = self._slots(rows, steps)[here]
      self.sampler.update(slots, priorities[here])

  def clear(self) -> None:
    """Lets go of all steps; ids and the generator go on."""
    with self.lock:
      before = self.store.oldest.copy()
      self.store.clear()
      self._close_left(before)

  def reopen(self) -> None:
    """Opens every complete start, after the rings were restored."""
    self._open_complete(int(self.store.oldest.min()))

  def _slots(self, rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return rows * self.store.max_length + steps % self.store.max_length

  def _close_left(self, before: np.ndarray) -> None:
    """Closes the steps that left; `before` is the [B] oldest ones before."""
    # A slot that many steps went through is closed once.
    left = np.minimum(self.store.oldest - before, self.store.max_length)
    for passed in _pieces(0, left.max()):
      rows, columns = np.nonzero(passed < left[:, None])
      self.sampler.close(self._slots(rows, before[rows] + passed[columns]))

  def _open_complete(self, first: int) -> None:
    """Opens steps from `first` on that may start and have n successors."""
    for steps in _pieces(first, self.store.head - self.n_step):
      windows = steps[:, None] + np.arange(self.n_step)
      windows %= self.store.max_length
      usable = may_start(
        self._step_types[:, windows], self._discounts[:, windows]
      )
      usable &= steps >= self.store.oldest[:, None]
      rows, columns = np.nonzero(usable)
      if rows.size:
        self.sampler.open(self._slots(rows, steps[columns]))


def _pieces(first: int, stop: int) -> Iterator[np.ndarray]:
  """The numbers from `first` up to `stop`, without it, in turn."""
  for start in range(first, stop, _AT_ONCE):
    yield np.arange(start, min(start + _AT_ONCE, stop))
