"""Draws from one replay, or from several as if they were one."""

import contextlib
from typing import List, NamedTuple, Sequence

import numpy as np

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay import arrays, shards
from tf_mmdrl.replay.frame_replay import FrameReplay


class Draw(NamedTuple):
  """K batches of B sequences of T steps.

  Attributes:
    values: for each field a [K, B, T, ...] array, stacked ones as planes.
    ids: [K, B] int64, names the first step of each sequence: the id that its
      replay gave it, times the number of replays, plus that replay's index.
    probabilities: [K, B] float32, of each draw.
    weights: [K, B] float32 importance weights.
  """

  values: List[np.ndarray]
  ids: np.ndarray
  probabilities: np.ndarray
  weights: np.ndarray

  def batch(self, k: int) -> "Draw":
    """Batch k, without the axis K."""
    return Draw([value[k] for value in self.values], *(x[k] for x in self[1:]))


def draw(
  replays: Sequence[FrameReplay],
  generator: np.random.Generator,
  num_batches: int,
  batch_size: int,
  num_steps: int,
  beta: float,
  *,
  ends: bool = False,
) -> Draw:
  """Draws sequences of neighbouring steps.

  Every start is drawn with the probability that it would have if all replays
  were one.

  Args:
    replays: what to draw from; alike but for their size and content.
    generator: the only source of randomness.
    num_batches: K.
    batch_size: B.
    num_steps: T, at most n + 1.
    beta: the exponent of the importance weights.
    ends: as in `FrameReplay.read`.

  Returns:
    The draw; K batches drawn from the same priorities.
  """
  with contextlib.ExitStack() as locks:
    for replay in replays:
      locks.enter_context(replay.lock)
    samplers = [replay.sampler for replay in replays]
    num_open = sum(sampler.num_open for sampler in samplers)
    if not num_open:
      num_there = sum(replay.num_steps for replay in replays)
      raise UserError(
        f"wanted to sample, but none of the {num_there} steps in replay can"
        f" start a sequence of {replays[0].n_step + 1}; add more steps first"
      )
    found = samplers[0].draw(
      samplers,
      generator,
      (num_batches, batch_size),
      [replay.num_filled for replay in replays],
    )
    weights = samplers[0].weights(found.probabilities, num_open, beta)
    ids = np.empty_like(found.slots)
    for index, where in shards.parts(found.shards, len(replays)):
      ids[where] = replays[index].ids(found.slots[where])
    values = _read(replays, ids, found.shards, num_steps, ends)
  ids = ids * len(replays) + found.shards
  return Draw(values, ids, found.probabilities.astype(np.float32), weights)


def _read(
  replays: Sequence[FrameReplay],
  ids: np.ndarray,
  owned: np.ndarray,
  num_steps: int,
  ends: bool,
) -> List[np.ndarray]:
  """The sequences that start at ids [K, B] of the replays `owned`."""
  if len(replays) == 1:
    return replays[0].read(ids, num_steps, ends=ends)  # spares a copy
  values: List[np.ndarray] = []
  for index, where in shards.parts(owned, len(replays)):
    read = replays[index].read(ids[where], num_steps, ends=ends)
    if not values:
      values = [
        arrays.empty([*ids.shape, *part.shape[1:]], part.dtype) for part in read
      ]
    for all_of_them, part in zip(values, read, strict=True):
      all_of_them[where] = part
  return values
