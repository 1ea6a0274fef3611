"""The Bellman backup, and n-step transitions that stop where episodes do."""

from typing import NamedTuple

import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution


class NStep(NamedTuple):
  """n steps of a trajectory, summed up to one transition.

  Attributes:
    reward: [B] or [B, D] discounted sum of rewards, up to the horizon.
    discount: [B] what multiplies the return from there on, gamma included.
    horizon: [B] int32, how many steps were summed: n, or fewer where the
      episode ended before.
  """

  reward: tf.Tensor
  discount: tf.Tensor
  horizon: tf.Tensor


def n_step(
  rewards: tf.Tensor,
  discounts: tf.Tensor,
  is_last: tf.Tensor,
  *,
  gamma: float,
) -> NStep:
  """Sums n steps, stopping at an episode's last step.

  An episode that was cut off (LAST with discount 1) goes on from its last
  state, never into the next episode's rewards.

  Args:
    rewards: [B, n] or [B, n, D] reward of the step from t to t + 1.
    discounts: [B, n] environment's discount of that step.
    is_last: [B, n] whether t is an episode's last step, so that t to t + 1
      belongs to no episode.
    gamma: the agent's discount.

  Returns:
    The n-step reward, discount and horizon.
  """
  # The step at t counts if no step up to t started at an episode's end. The
  # first is left to the caller, who masks the whole example.
  running = tf.cast(~is_last[:, 1:], discounts.dtype)
  running = tf.math.cumprod(
    tf.concat([tf.ones_like(discounts[:, :1]), running], axis=1), axis=1
  )
  factors = tf.where(running > 0, gamma * discounts, tf.ones_like(discounts))
  before = tf.math.cumprod(factors, axis=1, exclusive=True)
  shares = like_rewards(running * before, rewards)
  return NStep(
    reward=tf.reduce_sum(shares * rewards, axis=1),
    discount=tf.reduce_prod(factors, axis=1),
    horizon=tf.cast(tf.reduce_sum(running, axis=1), tf.int32),
  )


def backup(
  reward: tf.Tensor, discount: tf.Tensor, following: ReturnDistribution
) -> ReturnDistribution:
  """The Bellman target r + gamma Z(s', a*), with no gradient.

  Args:
    reward: [B], or [B, D] of joint distributions.
    discount: [B], gamma included; 0 where the episode terminated. All D returns
      share it.
    following: the next state's distributions, [B, M], or joint [B, M, D].

  Returns:
    Distributions of the shape of `following`.
  """
  reward = reward[:, tf.newaxis]
  discount = like_rewards(discount[:, tf.newaxis], reward)
  target = following.map_values(
    lambda z: reward + discount * z
  )  # Algorithm 1, line 6
  return target.stop_gradient()


def like_rewards(numbers: tf.Tensor, rewards: tf.Tensor) -> tf.Tensor:
  """Numbers [...] with an axis more if rewards are vectors, [..., D]."""
  is_joint = rewards.shape.rank > numbers.shape.rank
  return numbers[..., tf.newaxis] if is_joint else numbers
