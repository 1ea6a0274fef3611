"""How large returns are, from the rewards and discounts that were seen.

Rewards are measured and not the network's targets, because targets depend on
what is measured. They are counted by the top nine bits of their float32, sign
and binary exponent. One outlier changes such a histogram little, and rewards
that are 2^k times as large shift it by k places and change nothing else, so
that what follows from it is exact under powers of two.
"""

from typing import NamedTuple

import tensorflow as tf

NUM_BINS = 512  # two signs, 256 exponents
NUM_STATISTICS = NUM_BINS + 2  # the bins, E[discount], E[discount^2]
_BIAS = 127  # a float32's exponent is stored with this added
# Rewards that are rarer than this among those that are not 0 are outliers, and
# count as much as the largest one that is none. The larger a reward is, the
# more often it must occur: one in 500 if it is 16 times the median's size, one
# in 180 if it is 1,000 times, one in 6 if it is a billion times.
_RARE = 1e-3
_GROWTH = 0.25  # the power of (size / median size) by which that share grows
# Of 1 - E[discount]: an undiscounted task that never ends has no size.
_LEAST_END = 1e-3


class ReturnSize(NamedTuple):
  """A size as `relative * 2^exponent`.

  Attributes:
    known: [] (or [D], as the others) whether a reward other than 0 was seen.
    exponent: [] int32, of the largest reward that is not rare.
    relative: [] root mean square of returns, over 2^exponent.
  """

  known: tf.Tensor
  exponent: tf.Tensor
  relative: tf.Tensor


def statistics(
  reward: tf.Tensor, discount: tf.Tensor, weights: tf.Tensor
) -> tf.Tensor:
  """What a batch says of rewards and discounts.

  Args:
    reward: [B] n-step rewards, or [B, D] of D returns.
    discount: [B] what multiplies the next state's return.
    weights: [B] how much each example counts. One whose numbers are not all
      finite does not: an update with it will fail, and must leave no trace.

  Returns:
    [512 + 2] shares of the examples by sign and exponent of the reward, and
    the means of the discount and of its square; zeros if no example counts.
    [D, 512 + 2] for D returns.
  """
  if reward.shape.rank == 2:
    ones = tf.ones_like(reward)
    discount, weights = discount[:, None] * ones, weights[:, None] * ones
  sums = tf.cast(reward, tf.float32) + discount + weights
  finite = tf.math.is_finite(sums)
  zeros = tf.zeros_like(sums)
  weights = tf.where(finite, weights, zeros)
  discount = tf.where(finite, discount, zeros)
  bits = tf.bitcast(tf.cast(reward, tf.float32), tf.uint32)
  place = tf.cast(tf.bitwise.right_shift(bits, 23), tf.int32)
  weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=0))
  discount = discount[..., tf.newaxis]
  rows = tf.concat(
    [tf.one_hot(place, NUM_BINS), discount, discount**2], axis=-1
  )
  return tf.reduce_sum(weights[..., tf.newaxis] * rows, axis=0)


def return_size(average: tf.Tensor) -> ReturnSize:
  """The root mean square of returns, as if each step were drawn by itself.

  With r and d the reward and discount of a step that is independent of what
  follows, G = r + d G' has the moments

    E[G] = E[r] / (1 - E[d]),
    E[G^2] = (E[r^2] + 2 E[r] E[d] E[G]) / (1 - E[d^2]).

  The mean square of the rewards that are not 0 is added: where rewards are
  sparse, returns just before one are larger than the average by far.

  Args:
    average: [514] averaged `statistics`, or [D, 514].

  Returns:
    The size; each part of it is [D] for D returns.
  """
  positive, negative = average[..., :256], average[..., 256:NUM_BINS]
  places = tf.range(256)
  # The lowest exponent is that of 0 (and of numbers below 1e-38).
  either = tf.where(places > 0, positive + negative, 0.0)
  signed = tf.where(places > 0, positive - negative, 0.0)
  share = tf.reduce_sum(either, axis=-1)
  share_each = share[..., tf.newaxis]
  tail = tf.cumsum(either, axis=-1, reverse=True)  # rewards at least so large
  median = tf.reduce_max(tf.where(tail >= share_each / 2, places, 0), axis=-1)
  above = tf.maximum(places - median[..., tf.newaxis], 0)
  rare = _RARE * 2 ** (_GROWTH * tf.cast(above, tf.float32)) * share_each
  counts = (either > 0) & (tail > rare)
  largest = tf.reduce_max(tf.where(counts, places, 0), axis=-1)
  # 1.5: the middle of the numbers with one exponent.
  below = tf.clip_by_value(places - largest[..., tf.newaxis], -_BIAS, 0)
  size = 1.5 * power_of_two(below)
  mean = tf.reduce_sum(signed * size, axis=-1)
  square = tf.reduce_sum(either * size**2, axis=-1)
  discount, discount_square = average[..., NUM_BINS], average[..., NUM_BINS + 1]
  expected = mean / tf.maximum(1 - discount, _LEAST_END)
  of_returns = (square + 2 * mean * discount * expected) / tf.maximum(
    1 - discount_square, _LEAST_END
  )
  of_rewards = tf.math.divide_no_nan(square, share)
  return ReturnSize(
    known=share > 0,
    exponent=largest - _BIAS,
    relative=tf.sqrt(of_returns + of_rewards),
  )


def power_of_two(exponent: tf.Tensor) -> tf.Tensor:
  """2^exponent as a float32, exactly, for exponents in [-126, 127]."""
  return tf.bitcast((exponent + _BIAS) * 2**23, tf.float32)


def exponent_of(x: tf.Tensor) -> tf.Tensor:
  """floor(log2(x)) as int32, exactly, for a positive float32."""
  bits = tf.bitcast(tf.cast(x, tf.float32), tf.int32)
  return tf.bitwise.right_shift(bits, 23) - _BIAS
