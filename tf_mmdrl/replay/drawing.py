"""Draws from one replay, or from several as if they were one."""

import contextlib
from typing import List, NamedTuple, Sequence

import numpy as np

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay import shards
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

    def read(index, where):
      ids = replays[index].ids(found.slots[where])
      return [ids, *replays[index].read(ids, num_steps, ends=ends)]

    ids, *values = shards.put_together(found.shards, len(replays), read)
  ids = ids * len(replays) + found.shards
  probabilities = found.probabilities.astype(np.float32)
  return Draw(values, ids, probabilities, weights)
