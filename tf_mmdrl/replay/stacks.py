"""Stacked observations: telling them apart and putting them together."""

import functools
from typing import Any, Optional, Tuple

import numpy as np
import tensorflow as tf

_WORDS = {2: "<u2", 4: "<u4", 8: "<u8"}


def _as_words(observation: np.ndarray) -> Optional[np.ndarray]:
  """Pixels as little-endian words, if a pixel's stack has a word's size.

  The oldest frame is in the lowest bits. NumPy handles words many times faster
  than runs of three or four bytes.

  Args:
    observation: [B, ..., stack * C], contiguous.

  Returns:
    [B, pixels] words, or None.
  """
  size = observation.shape[-1] * observation.dtype.itemsize
  if size not in _WORDS:
    return None
  flat = observation.reshape([observation.shape[0], -1])
  return flat.view(_WORDS[size])


def lane(observation: np.ndarray, stack: int, index: int) -> np.ndarray:
  """One frame of a stack.

  Args:
    observation: [B, ..., stack * C], contiguous.
    stack: the frames in an observation.
    index: which of them, 0 for the oldest.

  Returns:
    [B, ..., C].
  """
  shape = observation.shape[:-1]
  words = _as_words(observation)
  if words is not None and words.dtype.itemsize == stack:  # a frame is a byte
    bytes_ = np.right_shift(words, words.dtype.type(8 * index)).astype(np.uint8)
    return bytes_.view(observation.dtype).reshape([*shape, 1])
  return observation.reshape([*shape, stack, -1])[..., index, :]


class StackWatcher:
  """Tells which observations go on from the ones seen just before.

  An observation goes on when all frames but its newest are, byte for byte, the
  newest frames of the observation before it. Bytes and not values, so that
  minus zero and NaN are told apart too.
  """

  def __init__(self, stack: int):
    self._stack = stack
    self._expected: Optional[np.ndarray] = None

  def forget(self) -> None:
    """Lets every environment's next observation start anew."""
    self._expected = None

  def goes_on(self, observation: np.ndarray) -> np.ndarray:
    """Compares with the observations of the call before.

    Args:
      observation: [B, ..., stack * C], contiguous.

    Returns:
      [B] booleans.
    """
    older, expected = self._split(observation)
    if self._expected is None:
      same = np.zeros([len(observation)], bool)
    else:
      same = (older == self._expected).all(axis=1)
    self._expected = expected
    return same

  def _split(self, observation: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """All frames but the newest, and all but the oldest; each [B, ...]."""
    words = _as_words(observation)
    if words is not None:
      word = words.dtype.type
      frame_bits = 8 * words.dtype.itemsize // self._stack
      older_bits = 8 * words.dtype.itemsize - frame_bits
      older = np.bitwise_and(words, word((1 << older_bits) - 1))
      return older, np.right_shift(words, word(frame_bits))
    bytes_ = observation.view(np.uint8)
    frame = bytes_.shape[-1] // self._stack
    rows = [len(observation), -1]
    # A copy, because the caller may write to its observation again.
    newer = bytes_[..., frame:].copy()
    return bytes_[..., :-frame].reshape(rows), newer.reshape(rows)


def stack_last(planes: tf.Tensor, rank: int) -> tf.Tensor:
  """Puts planes together to observations, as the environment showed them.

  Inside a training step that XLA compiles this costs nothing: it becomes the
  order in which the first layer reads, for those observations that are used.

  Args:
    planes: [..., stack, *frame, C] frames, oldest first.
    rank: the rank of an observation, `len([*frame, C])`.

  Returns:
    [..., *frame, stack * C] observations.
  """
  last = planes.shape.rank - 1
  axis = last - rank
  order = [*range(axis), *range(axis + 1, last), axis, last]
  moved = tf.transpose(planes, order)
  merged = moved.shape[-2] * moved.shape[-1]
  shape = tf.concat([tf.shape(moved)[:-2], [merged]], axis=0)
  return tf.ensure_shape(tf.reshape(moved, shape), [*moved.shape[:-2], merged])


def stack_last_now(planes: tf.Tensor, rank: int) -> tf.Tensor:
  """Stacks as `stack_last` does, but fast for eager tensors of known shape."""
  return _compiled(tuple(planes.shape), planes.dtype, rank)(planes)


@functools.cache
def _compiled(shape: Tuple[int, ...], dtype: tf.DType, rank: int) -> Any:
  axis = len(shape) - rank - 1

  def weave(planes):
    if dtype != tf.uint8 or (shape[axis], shape[-1]) != (4, 1):
      return stack_last(planes, rank)
    # Four bytes are a word: sums of words vectorise, a transpose does not.
    words = tf.cast(tf.squeeze(planes, -1), tf.uint32)
    lanes = enumerate(tf.unstack(words, axis=axis))
    return tf.bitcast(tf.add_n([w * 256**k for k, w in lanes]), tf.uint8)

  # A concrete function: finding it anew costs half of what running it does.
  compiled = tf.function(weave, jit_compile=True)
  return compiled.get_concrete_function(tf.TensorSpec(shape, dtype))
