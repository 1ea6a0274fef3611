"""Random numbers from a seed that the caller gives: of networks, and of play.

A seed is int [2], as for `tf.random.stateless` functions. A seed made of the
training step lets a resumed run draw what an uninterrupted run draws. Floats
are made from random bits here, because XLA makes other floats from the same
bits: so the same seed gives the same draws, compiled or not.
"""

from typing import Optional

import tensorflow as tf

_ALGORITHM = "philox"  # named, because XLA would choose another


def fold(seed: Optional[tf.Tensor], number: int) -> Optional[tf.Tensor]:
  """A seed for one of several uses; None stays None."""
  if seed is None:
    return None
  return tf.random.experimental.stateless_fold_in(seed, number, alg=_ALGORITHM)


def uniform(shape, seed: tf.Tensor) -> tf.Tensor:
  """Float32 in (0, 1): the middles of 2^23 equal parts."""
  bits = tf.random.stateless_uniform(
    shape, seed, minval=None, maxval=None, dtype=tf.int32, alg=_ALGORITHM
  )
  high = tf.bitwise.right_shift(tf.bitcast(bits, tf.uint32), 9)
  # All 24 digits of a float32: 23 bits and the half.
  return (tf.cast(tf.cast(high, tf.int32), tf.float32) + 0.5) * 2.0**-23


def uniform_by_row(shape, seed: tf.Tensor) -> tf.Tensor:
  """As `uniform`, row by row of a batch of which a replica may have a part.

  Args:
    shape: [B, ...], with B the rows of this replica.
    seed: the same on all replicas.

  Returns:
    What one device with the whole batch would draw for these rows.
  """
  replica = tf.distribute.get_replica_context()
  count = 1 if replica is None else replica.num_replicas_in_sync
  if count == 1:
    return uniform(shape, seed)
  rows, *rest = shape
  first = rows * replica.replica_id_in_sync_group
  whole = uniform([count * rows, *rest], seed)
  return whole[first : first + rows]


def normal(shape, seed: tf.Tensor) -> tf.Tensor:
  """Float32 standard normal draws."""
  return tf.math.ndtri(uniform(shape, seed))
