"""Convolutions [B, H, W, C] -> [B, H', W', F], as they are computed fastest.

Two rewritings, each exact up to the order of sums:

A convolution of stride s whose kernel size is a multiple of s is one of stride
1 on blocks of s x s pixels: `space_to_depth(x, s)` has them as channels. That
is faster by TensorFlow's own code and by XLA's, and not by oneDNN's.

A convolution of stride 1 is a matrix product of its patches with the kernel,
and so is the kernel's gradient, for which XLA has a plain loop otherwise, on a
CPU and inside of loops. Patches take memory, so this is for small ones.
"""

import functools
import math
from typing import NamedTuple, Optional, Sequence, Tuple

import tensorflow as tf

# Numbers in the patches of one example up to which a product is faster.
_FEW = 8192


class Geometry(NamedTuple):
  """Where a convolution of pictures of one size puts its kernel.

  Attributes:
    edges: ((top, bottom), (left, right)) zeros to pad with.
    covered: (rows, columns) of the padded picture that the kernel reaches.
    places: (H', W'), where the kernel is put.
    has_blocks: whether the kernel's size is a multiple of the stride.
    is_small: whether it has, and patches are few.
  """

  edges: Tuple[Tuple[int, int], ...]
  covered: Tuple[int, ...]
  places: Tuple[int, ...]
  has_blocks: bool
  is_small: bool


def geometry(
  size: Sequence[int], kernel: Sequence[int], stride: int, padding: str
) -> Geometry:
  """The geometry of a convolution.

  Args:
    size: (H, W, C) of a picture.
    kernel: (h, w, C, F).
    stride: s, both ways.
    padding: "VALID" or "SAME".

  Returns:
    The geometry.
  """
  edges, covered, places = [], [], []
  for given, width in zip(size[:2], kernel[:2]):
    if padding == "SAME":
      count = math.ceil(given / stride)
      missing = max(0, (count - 1) * stride + width - given)
    else:
      count, missing = (given - width) // stride + 1, 0
    edges.append((missing // 2, missing - missing // 2))
    covered.append((count - 1) * stride + width)
    places.append(count)
  has_blocks = all(width % stride == 0 for width in kernel[:2])
  numbers = math.prod(places) * math.prod(kernel[:3])
  return Geometry(
    tuple(edges),
    tuple(covered),
    tuple(places),
    has_blocks,
    is_small=has_blocks and numbers <= _FEW,
  )


@functools.cache
def has_onednn() -> bool:
  """Whether oneDNN computes TensorFlow's convolutions in this process.

  By default it does on CPUs with instructions for neural networks
  (AVX512-VNNI and newer).
  """
  try:
    from tensorflow.python.util import _pywrap_util_port
  except ImportError:
    return False
  return bool(_pywrap_util_port.IsMklEnabled())


def convolution(
  x: tf.Tensor,
  kernel: tf.Tensor,
  *,
  stride: int,
  padding: str,
  by_blocks: Optional[bool] = None,
) -> tf.Tensor:
  """What `tf.nn.conv2d` computes.

  Args:
    x: [B, H, W, C]; H, W and C are known.
    kernel: [h, w, C, F].
    stride: s, both ways.
    padding: "VALID" or "SAME".
    by_blocks: whether to see blocks as channels where there are any; what is
      faster here if None.

  Returns:
    [B, H', W', F].
  """
  found = geometry(x.shape[1:], kernel.shape, stride, padding)
  if by_blocks is None:
    by_blocks = stride > 1 and not has_onednn()
  if not found.is_small and not (found.has_blocks and by_blocks):
    return tf.nn.conv2d(x, kernel, stride, padding)
  if any(map(any, found.edges)):
    x = tf.pad(x, [(0, 0), *found.edges, (0, 0)])
  if tuple(x.shape[1:3]) != found.covered:  # a slice has a gradient to compute
    x = x[:, : found.covered[0], : found.covered[1]]
  if stride > 1:
    x, kernel = tf.nn.space_to_depth(x, stride), _of_blocks(kernel, stride)
  if found.is_small:
    return _by_patches(x, kernel, found.places)
  return tf.nn.conv2d(x, kernel, 1, "VALID")


def _of_blocks(kernel: tf.Tensor, stride: int) -> tf.Tensor:
  """The kernel [h/s, w/s, s s C, F] that sees blocks as channels."""
  height, width, channels, filters = kernel.shape
  rows, columns = height // stride, width // stride
  split = [rows, stride, columns, stride, channels, filters]
  moved = tf.transpose(tf.reshape(kernel, split), [0, 2, 1, 3, 4, 5])
  return tf.reshape(moved, [rows, columns, stride**2 * channels, filters])


def _by_patches(
  x: tf.Tensor, kernel: tf.Tensor, places: Sequence[int]
) -> tf.Tensor:
  """A valid convolution of stride 1 as one matrix product."""
  height, width, channels, filters = kernel.shape
  rows, columns = places
  patches = tf.concat(
    [
      x[:, i : i + rows, j : j + columns]
      for i in range(height)
      for j in range(width)
    ],
    axis=-1,
  )
  flat = tf.reshape(patches, [-1, height * width * channels])
  product = tf.matmul(flat, tf.reshape(kernel, [-1, filters]))
  return tf.reshape(product, [-1, rows, columns, filters])
