"""Two sets of numbers in one row, in an order in which they take turns.

Sums of x and of -y over such a row lose few digits: partial sums stay small, in
sequential and in vectorised summation alike.
"""

from typing import Tuple

import numpy as np
import tensorflow as tf

# x and y take turns in groups of this size.
_GROUP = 4


def joined(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """x [B, N] and y [B, M], taking turns, [B, N + M]."""
  num_x, num_y = x.shape[1], y.shape[1]
  if not _is_even(num_x, num_y):
    places, _ = order(num_x, num_y)
    return tf.gather(tf.concat([x, y], axis=1), places, axis=1)
  groups = [tf.reshape(z, [-1, num_x // _GROUP, _GROUP]) for z in (x, y)]
  return tf.reshape(tf.stack(groups, axis=2), [-1, num_x + num_y])


def first(z: tf.Tensor, num_x: int) -> tf.Tensor:
  """The x [B, N] of what `joined` gave, [B, N + M]."""
  num_y = z.shape[1] - num_x
  if not _is_even(num_x, num_y):
    _, places = order(num_x, num_y)
    return tf.gather(z, places, axis=1)
  groups = tf.reshape(z, [-1, num_x // _GROUP, 2, _GROUP])
  return tf.reshape(groups[:, :, 0], [-1, num_x])


def _is_even(num_x: int, num_y: int) -> bool:
  """Whether whole groups take turns one by one, which needs no gather."""
  return num_x == num_y and num_x % _GROUP == 0


def order(num_x: int, num_y: int) -> Tuple[np.ndarray, np.ndarray]:
  """An order in which x and y take turns, and where it puts the x."""
  keys = np.concatenate(
    [(np.arange(num) // _GROUP + 0.5) / num for num in (num_x, num_y)]
  )
  places = np.argsort(keys, kind="stable")
  return places, np.argsort(places)[:num_x]
