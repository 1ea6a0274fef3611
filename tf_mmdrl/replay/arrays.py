"""Arrays that TensorFlow can take over without a copy."""

import math
from typing import Sequence

import numpy as np
import tensorflow as tf

_ALIGNMENT = 64  # what TensorFlow's kernels demand of a tensor's memory


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
  """Like `np.empty`, at an address that `share` accepts."""
  size = math.prod(shape) * np.dtype(dtype).itemsize
  memory = np.empty([size + _ALIGNMENT], np.uint8)
  start = -_address(memory) % _ALIGNMENT
  return memory[start : start + size].view(dtype).reshape(shape)


def take(ring: np.ndarray, slots: np.ndarray) -> np.ndarray:
  """Copies slots out of a ring, into memory that `share` accepts.

  Args:
    ring: [B, L, ...].
    slots: [...] positions in the ring flattened to [B * L, ...].

  Returns:
    [..., ...] the items.
  """
  items = ring.reshape([-1, *ring.shape[2:]])
  out = empty([*slots.shape, *ring.shape[2:]], ring.dtype)
  # With mode "raise" NumPy would go through a second array.
  np.take(items, slots, axis=0, out=out, mode="wrap")
  return out


def share(array: np.ndarray) -> tf.Tensor:
  """A tensor over the memory of an array, which nobody may write any more.

  Copying a batch of Atari observations costs more than sampling it.

  Args:
    array: from `empty` or `take`; any other is copied, if it has to be.

  Returns:
    The tensor, on the CPU.
  """
  if array.dtype == np.bool_ or not array.size:  # DLPack has neither
    return tf.convert_to_tensor(array)
  if _address(array) % _ALIGNMENT or not array.flags.c_contiguous:
    unaligned, array = array, empty(array.shape, array.dtype)
    array[...] = unaligned
  return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _address(array: np.ndarray) -> int:
  return array.__array_interface__["data"][0]
