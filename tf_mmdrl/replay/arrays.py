"""Arrays that TensorFlow can take over without a copy."""

import math
from typing import Iterable, List, Sequence

import numpy as np
import tensorflow as tf

_ALIGNMENT = 64  # what TensorFlow's kernels demand of a tensor's memory


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
  """Like `np.empty`, at an address that `share` accepts."""
  size = math.prod(shape) * np.dtype(dtype).itemsize
  memory = np.empty([size + _ALIGNMENT], np.uint8)
  start = -_address(memory) % _ALIGNMENT
  return memory[start : start + size].view(dtype).reshape(shape)


def take(rings: Iterable[np.ndarray], slots: np.ndarray) -> List[np.ndarray]:
  """Copies slots out of rings, into memory that `share` accepts.

  Args:
    rings: [B, L, ...] each.
    slots: [...] positions in a ring flattened to [B * L, ...].

  Returns:
    [..., ...] the items, of each ring.
  """
  taken = []
  for ring in rings:
    items = ring.reshape([-1, *ring.shape[2:]])
    out = empty([*slots.shape, *ring.shape[2:]], ring.dtype)
    # With mode "raise" NumPy would go through a second array.
    np.take(items, slots, axis=0, out=out, mode="wrap")
    taken.append(out)
  return taken


def share(arrays: Iterable[np.ndarray]) -> List[tf.Tensor]:
  """Tensors over the memory of arrays, which nobody may write any more.

  Copying a batch of Atari observations costs more than sampling it.

  Args:
    arrays: from `empty` or `take`; any other is copied, if it has to be.

  Returns:
    The tensors, on the CPU.
  """
  return [_shared(array) for array in arrays]


def _shared(array: np.ndarray) -> tf.Tensor:
  if array.dtype == np.bool_ or not array.size:  # DLPack has neither
    return tf.convert_to_tensor(array)
  if _address(array) % _ALIGNMENT or not array.flags.c_contiguous:
    unaligned, array = array, empty(array.shape, array.dtype)
    array[...] = unaligned
  return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _address(array: np.ndarray) -> int:
  return array.__array_interface__["data"][0]
