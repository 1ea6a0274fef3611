"""Chunks as they travel: each frame once, full stacks where they begin.

An Atari observation shows four frames, three of which the one before it showed
already. So a chunk carries the newest frame of each step, and the older ones
only of steps that do not go on from the step before. What comes out is, bit for
bit, what went in.
"""

from typing import Any, List, NamedTuple, Optional

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import trajectory

from tf_mmdrl.replay import stacks
from tf_mmdrl.train.actor import Chunk


class Frames(NamedTuple):
  """Stacked observations [T, B, ..., stack * C], each frame once.

  Attributes:
    newest: [T, B, ..., C] the newest frame of each stack.
    fresh: [T, B] whether a stack does not go on from the step before.
    older: [K, ..., (stack - 1) * C] the other frames of the K fresh stacks.
  """

  newest: np.ndarray
  fresh: np.ndarray
  older: np.ndarray


class PackedChunk(NamedTuple):
  """A chunk as arrays over time.

  Attributes:
    steps: a trajectory of arrays [T, B, ...]; without observations if `frames`
      has them. None if nothing was played.
    frames: the observations, if they are stacks.
    num_steps: as the chunk's.
    scores: as the chunk's.
    last_end: as the chunk's.
  """

  steps: Optional[trajectory.Trajectory]
  frames: Optional[Frames]
  num_steps: int
  scores: List[Any]
  last_end: int

  @property
  def nbytes(self) -> int:
    """Bytes of its arrays."""
    arrays = tf.nest.flatten([self.steps, self.frames])
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def pack(chunk: Chunk, stack: int) -> PackedChunk:
  """Lays a chunk out for travel.

  Args:
    chunk: what was played.
    stack: frames that an observation shows.

  Returns:
    The same; arrays of its own.
  """
  rest = (chunk.num_steps, chunk.scores, chunk.last_end)
  if not chunk.trajectories:
    return PackedChunk(None, None, *rest)
  parts, frames = chunk.trajectories, None
  if stack > 1:
    frames = _pack_frames([part.observation for part in parts], stack)
    parts = [part._replace(observation=()) for part in parts]
  steps = tf.nest.map_structure(lambda *over_time: np.stack(over_time), *parts)
  return PackedChunk(steps, frames, *rest)


def unpack(packed: PackedChunk) -> Chunk:
  """The chunk, in memory of its own: nothing of `packed` is held."""
  rest = (packed.num_steps, list(packed.scores), packed.last_end)
  if packed.steps is None:
    return Chunk([], *rest)
  steps = tf.nest.map_structure(np.array, packed.steps)
  if packed.frames is not None:
    steps = steps._replace(observation=_unpack_frames(packed.frames))
  length = len(steps.step_type)
  return Chunk([_at(steps, time) for time in range(length)], *rest)


def _at(steps: Any, time: int) -> Any:
  return tf.nest.map_structure(lambda array: array[time], steps)


def _pack_frames(observations: List[np.ndarray], stack: int) -> Frames:
  watcher = stacks.StackWatcher(stack)
  shown = [np.ascontiguousarray(observation) for observation in observations]
  fresh = np.stack([~watcher.goes_on(one) for one in shown])
  newest = np.stack([stacks.lane(one, stack, stack - 1) for one in shown])
  channels = newest.shape[-1]
  older = [one[new, ..., :-channels] for one, new in zip(shown, fresh)]
  return Frames(newest, fresh, np.concatenate(older))


def _unpack_frames(frames: Frames) -> np.ndarray:
  """[T, B, ..., stack * C] observations."""
  newest, fresh, older = frames
  channels = newest.shape[-1]
  shape = [*newest.shape[:-1], older.shape[-1] + channels]
  observations = np.empty(shape, newest.dtype)
  observations[..., -channels:] = newest
  begun = 0
  for time, new in enumerate(fresh):
    count = int(new.sum())
    here = observations[time]
    here[new, ..., :-channels] = older[begun : begun + count]
    begun += count
    if count < len(new):  # the first step is fresh everywhere
      here[~new, ..., :-channels] = observations[time - 1][~new, ..., channels:]
  return observations
