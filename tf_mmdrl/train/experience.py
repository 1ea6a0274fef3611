"""Replay as a run uses it: chunks in, the next round's batches out.

The batches of a round are drawn from replay as it was at the end of the round
before, so what they hold does not depend on which thread is faster.
"""

from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl import replay
from tf_mmdrl.train.actor import Chunk

Batches = Tuple[Any, replay.BufferInfo]


class Priorities(NamedTuple):
  """New priorities that have not reached replay yet; each [K, B]."""

  ids: np.ndarray
  losses: np.ndarray


class Experience:
  """Replay, and the batches that were drawn from it and not taken yet.

  Attributes:
    replay: a shard for each actor slot.
    pending: priorities of the last round's examples; they reach replay in
      `prepare`, at the same moment of every run.
  """

  def __init__(
    self, shards: replay.ShardedReplay, *, num_updates: int, batch_size: int
  ):
    """Draws nothing yet.

    Args:
      shards: the shards of replay, one for each actor slot.
      num_updates: K, updates of a round.
      batch_size: B.
    """
    self.replay = shards
    self.pending: Optional[Priorities] = None
    self._size = (num_updates, batch_size)
    self._next: Optional[Batches] = None
    self._generator_before: Mapping[str, Any] = {}

  def add(self, chunks: Sequence[Chunk]) -> None:
    """Stores what was played, in the slots' order."""
    for slot, chunk in zip(range(len(self.replay.shards)), chunks, strict=True):
      self.add_to(slot, chunk)

  def add_to(self, slot: int, chunk: Chunk) -> None:
    """Stores what one slot played."""
    self.replay.shards[slot].add_steps(chunk.trajectories)

  def prepare(self, beta: float) -> None:
    """Draws the next round's batches, after what is pending."""
    if self.pending is not None:
      self.replay.update_priorities(*self.pending)
      self.pending = None
    self._generator_before = self.replay.generator.bit_generator.state
    self._next = self._draw(beta)

  def take(self, beta: float) -> Batches:
    """This round's batches, drawn before or now."""
    batches, self._next = self._next, None
    return self._draw(beta) if batches is None else batches

  def learnt(self, batches: Batches, losses: np.ndarray) -> None:
    """Keeps the losses [K, B] of a round's examples as their priorities."""
    if self.replay.is_prioritized:
      self.pending = Priorities(batches[1].ids.numpy(), losses)

  def rewind(self) -> None:
    """Takes back the draw, so that it can be drawn again.

    Replay and its generator are then as if `prepare` had drawn nothing: the
    state that a checkpoint saves.
    """
    if self._next is not None:
      self._next = None
      self.replay.generator.bit_generator.state = self._generator_before

  def _draw(self, beta: float) -> Batches:
    return self.replay.sample_planes(*self._size, beta=beta, ends=True)
