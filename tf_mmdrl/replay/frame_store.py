"""Where replay keeps its steps: every frame once, every stack exact."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.replay import arrays, stacks

# Room for the frames that a new game's first stack adds: enough for games of
# 192 steps and more at a stack of 4. Shorter games make old steps leave early.
_ROOM_FOR_STARTS = 64


class Field(NamedTuple):
  """One array of a step.

  Attributes:
    shape: the shape, without batch or time.
    dtype: the NumPy dtype.
  """

  shape: Tuple[int, ...]
  dtype: np.dtype


class FrameStore:
  """The last L steps of each of B environments, in NumPy rings.

  A step's fields lie in rings `[B, L, ...]`. The frames of a stacked
  observation lie in a ring of their own, `[B, F, ...]`, and an observation is
  `stack` neighbours in it; a step only knows where its newest frame is. A step
  that goes on from the one before adds one frame. Any other step adds its whole
  stack, whatever the environment padded it with. So rebuilding is exact without
  a rule about episodes, lives or padding.

  Steps and frames are counted from the first ever added and never anew; ring
  positions are these counts modulo the ring's length.

  Attributes:
    head: steps ever added, per environment.
    oldest: [B] the first step that is still there.
    rings: a `[B, L, ...]` array for each field, None for the stacked one.
    frames: [B, F, *frame, C]; this and the rest only with a stacked field.
    frame_heads: [B] frames ever added.
    newest: [B, L] where each step's newest frame is.
  """

  def __init__(
    self,
    fields: Sequence[Field],
    *,
    batch_size: int,
    max_length: int,
    stack: int = 1,
    stacked: Optional[int] = None,
  ):
    """Lays out the rings; memory is taken when it is first written.

    Args:
      fields: the arrays of a step.
      batch_size: B, the number of environments.
      max_length: L, the steps kept of each environment.
      stack: the frames in an observation.
      stacked: the index of the field that is a stack of frames, if any.
    """
    self.fields = list(fields)
    self.batch_size = batch_size
    self.max_length = max_length
    self.stack = stack
    self.stacked = stacked
    self.head = 0
    self.oldest = np.zeros([batch_size], np.int64)
    self._rows = np.arange(batch_size)
    self.rings: List[Any] = [
      None
      if index == stacked
      else np.zeros([batch_size, max_length, *field.shape], field.dtype)
      for index, field in enumerate(self.fields)
    ]
    if stacked is not None:
      *frame, channels = self.fields[stacked].shape
      self.frame_shape = (*frame, channels // stack)
      self.num_frame_slots = (
        max_length + max_length // _ROOM_FOR_STARTS + 2 * stack
      )
      self.frames = np.zeros(
        [batch_size, self.num_frame_slots, *self.frame_shape],
        self.fields[stacked].dtype,
      )
      self.frame_heads = np.zeros([batch_size], np.int64)
      self.newest = np.zeros([batch_size, max_length], np.int64)
      self._watcher = stacks.StackWatcher(stack)

  @property
  def nbytes(self) -> int:
    """Bytes of all rings when full."""
    every = [ring for ring in self.rings if ring is not None]
    if self.stacked is not None:
      every += [self.frames, self.newest]
    return sum(ring.nbytes for ring in every)

  def add(self, steps: Sequence[Sequence[np.ndarray]]) -> None:
    """Adds steps of every environment.

    Args:
      steps: for each step a [B, ...] array for each field.
    """
    for values in steps:
      slot = self.head % self.max_length
      for ring, value in zip(self.rings, values):
        if ring is not None:
          ring[:, slot] = value
      if self.stacked is not None:
        self._add_frames(slot, np.ascontiguousarray(values[self.stacked]))
      self.head += 1
      self._retire()

  def read(
    self, rows: np.ndarray, steps: np.ndarray, *, ends: bool = False
  ) -> List[np.ndarray]:
    """Reads steps.

    Args:
      rows: [...] environments.
      steps: [...] step numbers, all still there.
      ends: reads the stacked field only for the first and the last step along
        the last axis.

    Returns:
      An array `[..., *shape]` for each field; for the stacked field its planes
      `[..., stack, *frame, C]`, oldest first.
    """
    slots = rows * self.max_length + steps % self.max_length
    plain = [ring for ring in self.rings if ring is not None]
    values = arrays.take(plain, slots)
    if self.stacked is not None:
      if ends:
        rows, slots = rows[..., [0, -1]], slots[..., [0, -1]]
      newest = self.newest.reshape([-1])[slots]
      lanes = newest[..., None] + np.arange(1 - self.stack, 1)
      lanes %= self.num_frame_slots
      lanes += rows[..., None] * self.num_frame_slots
      values[self.stacked : self.stacked] = arrays.take([self.frames], lanes)
    return values

  def clear(self) -> None:
    """Lets go of all steps; the counts go on."""
    self.oldest[:] = self.head
    self.forget_stacks()

  def forget_stacks(self) -> None:
    """Makes every environment's next step add its whole stack."""
    if self.stacked is not None:
      self._watcher.forget()

  def watch_last(self) -> None:
    """Prepares to go on from the last step, after the rings were restored."""
    self.forget_stacks()
    if self.stacked is not None and (self.oldest < self.head).all():
      last = np.full([self.batch_size], self.head - 1)
      planes = self.read(self._rows, last)[self.stacked]
      shape = [self.batch_size, *self.fields[self.stacked].shape]
      observation = np.moveaxis(planes, 1, -2).reshape(shape)
      self._watcher.goes_on(np.ascontiguousarray(observation))

  def _add_frames(self, slot: int, observation: np.ndarray) -> None:
    fresh = np.flatnonzero(~self._watcher.goes_on(observation))
    if fresh.size:
      for index in range(self.stack - 1):
        older = stacks.lane(observation[fresh], self.stack, index)
        self._write_frames(fresh, older)
    newest = stacks.lane(observation, self.stack, self.stack - 1)
    self._write_frames(self._rows, newest)
    self.newest[:, slot] = self.frame_heads - 1

  def _write_frames(self, rows: np.ndarray, frames: np.ndarray) -> None:
    self.frames[rows, self.frame_heads[rows] % self.num_frame_slots] = frames
    self.frame_heads[rows] += 1

  def _retire(self) -> None:
    """Lets go of steps that were overwritten, or one of whose frames was."""
    np.maximum(self.oldest, self.head - self.max_length, out=self.oldest)
    if self.stacked is None:
      return
    first_frame = self.frame_heads - self.num_frame_slots
    if (first_frame <= 0).all():
      return
    while True:
      # The step just added has all its frames, so this ends there at last.
      newest = self.newest[self._rows, self.oldest % self.max_length]
      broken = newest - (self.stack - 1) < first_frame
      if not broken.any():
        return
      self.oldest += broken
