"""The one way from scores to actions: the mask, the largest score, and chance.

TF-Agents policies, the training loop, evaluations, videos and exports choose
here. What is random is a function of a seed that the caller gives.
"""

from typing import NamedTuple, Optional

import tensorflow as tf

from tf_mmdrl.core import draws


class Chance(NamedTuple):
  """All that is random about one choice of actions.

  Attributes:
    explore: [B] in (0, 1): a random action where this is below epsilon.
    order: [B, A] in (0, 1): the random action is the largest one allowed.
    score: [B, A] in (0, 1), for scores that draw.
    noise: int [2], the seed of the network's noise.
  """

  explore: tf.Tensor
  order: tf.Tensor
  score: tf.Tensor
  noise: tf.Tensor


def chance(seed: tf.Tensor, batch_size: tf.Tensor, num_actions: int) -> Chance:
  """The draws of one choice; `seed` is int [2], `batch_size` B."""
  shape = [batch_size, num_actions]
  return Chance(
    draws.uniform(shape[:1], draws.fold(seed, 0)),
    draws.uniform(shape, draws.fold(seed, 1)),
    draws.uniform(shape, draws.fold(seed, 2)),
    draws.fold(seed, 3),
  )


def allowed(scores: tf.Tensor, mask: Optional[tf.Tensor]) -> tf.Tensor:
  """Scores [B, A] with the lowest number where the mask [B, A] forbids."""
  if mask is None:
    return scores
  return tf.where(tf.cast(mask, tf.bool), scores, scores.dtype.min)


def largest(scores: tf.Tensor, mask: Optional[tf.Tensor] = None) -> tf.Tensor:
  """[B] int64, the allowed action with the largest score [B, A]."""
  return tf.argmax(allowed(scores, mask), axis=-1)


def choose(
  scores: tf.Tensor,
  mask: Optional[tf.Tensor],
  epsilon: tf.Tensor,
  drawn: Chance,
) -> tf.Tensor:
  """The best action, or with probability epsilon any that is allowed.

  Args:
    scores: [B, A].
    mask: [B, A] of the actions allowed, or None for all.
    epsilon: [], the probability of a random action.
    drawn: see `chance`.

  Returns:
    [B] actions, int64.
  """
  best, other = largest(scores, mask), largest(drawn.order, mask)
  return tf.where(drawn.explore < epsilon, other, best)


def probabilities(
  scores: tf.Tensor,
  mask: Optional[tf.Tensor],
  epsilon: tf.Tensor,
  best: Optional[tf.Tensor] = None,
) -> tf.Tensor:
  """[B, A], with which `choose` takes each action.

  Args:
    scores: [B, A].
    mask: [B, A] of the actions allowed, or None for all.
    epsilon: [], the probability of a random action.
    best: [B, A] probabilities of actions that are not random, where the scores
      are such a draw; the largest score's action if None.

  Returns:
    The probabilities.
  """
  if best is None:
    best = tf.one_hot(largest(scores, mask), scores.shape[-1])
  any_of = tf.ones_like(scores) if mask is None else tf.cast(mask, scores.dtype)
  any_of /= tf.reduce_sum(any_of, axis=-1, keepdims=True)
  epsilon = tf.cast(epsilon, scores.dtype)
  return epsilon * any_of + (1 - epsilon) * best
