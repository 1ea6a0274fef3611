"""Target rules: from a transition to the distribution it should predict."""

import dataclasses
import math
from typing import Optional, Tuple

import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.agents import predicting, transitions
from tf_mmdrl.agents.predicting import Use
from tf_mmdrl.core import choosing, errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bellman

# The logarithm of no probability: exp gives 0, and sums stay finite.
_NEVER = -1e4


def greedy(
  distributions: ReturnDistribution,
  expected: tf.Tensor,
  mask: Optional[tf.Tensor],
) -> ReturnDistribution:
  """The distribution of the action with the largest expected return.

  The action maximises the *mean* of the particles (Algorithm 3, line 6); a
  maximum over actions particle by particle is the return of no policy.

  Args:
    distributions: [B, A, M], of the target network.
    expected: [B, A], of the network that chooses.
    mask: [B, A] of the actions allowed, or None.

  Returns:
    Distributions of [B, M].
  """
  return distributions.at(choosing.largest(expected, mask))


@dataclasses.dataclass(frozen=True)
class Munchausen:
  """Vieillard et al., "Munchausen Reinforcement Learning", 2020.

  The policy is the softmax of the expected returns; its scaled log-probability
  is added to the reward, and the target is the distribution of this policy's
  return with the entropy bonus. M-IQN averages its actions' quantiles instead,
  which is the distribution of no policy's return; for N = 1 both have the same
  mean, M-DQN's target.

  Attributes:
    alpha: share of the log-probability that joins the reward.
    temperature: tau of the softmax, in units of return.
    lowest: l_0, where tau log pi(a|s) is clipped, in units of return.
  """

  alpha: float = 0.9
  temperature: float = 0.03
  lowest: float = -1.0

  def __post_init__(self):
    if not (0 <= self.alpha <= 1 and self.temperature > 0 > self.lowest):
      raise errors.UserError(
        "Munchausen wants alpha in [0, 1], temperature > 0 and lowest < 0, got"
        f" {self.alpha}, {self.temperature} and {self.lowest}"
      )

  def bonus(
    self,
    distributions: ReturnDistribution,
    action: tf.Tensor,
    mask: Optional[tf.Tensor],
  ) -> tf.Tensor:
    """[B] alpha x [tau log pi(a|s)] clipped to [l_0, 0] (equation 2)."""
    _, scaled = self._policy(distributions, mask)
    taken = tf.gather(scaled, action, axis=1, batch_dims=1)
    return self.alpha * tf.clip_by_value(taken, self.lowest, 0.0)

  def soft(
    self, distributions: ReturnDistribution, mask: Optional[tf.Tensor]
  ) -> ReturnDistribution:
    """[B, A * M], distributed as Z(s', a') - tau log pi(a'|s') for a' ~ pi."""
    log_policy, scaled = self._policy(distributions, mask)
    values = distributions.values - scaled[..., tf.newaxis]
    own = distributions.log_weights
    if own is None:
      own = -math.log(values.shape[2]) + tf.zeros_like(values)
    log_weights = log_policy[..., tf.newaxis] + own
    flat = [-1, values.shape[1] * values.shape[2]]
    return ReturnDistribution(
      tf.reshape(values, flat), tf.reshape(log_weights, flat)
    )

  def _policy(self, distributions, mask) -> Tuple[tf.Tensor, tf.Tensor]:
    """log pi and tau log pi, each [B, A]; finite, 0 for forbidden actions."""
    expected = distributions.mean()
    scores = choosing.allowed(expected, mask)
    best = tf.reduce_max(scores, axis=1, keepdims=True)
    allowed = scores > scores.dtype.min
    preference = tf.where(allowed, (expected - best) / self.temperature, _NEVER)
    log_policy = tf.maximum(tf.nn.log_softmax(preference), _NEVER)
    return log_policy, tf.where(allowed, self.temperature * log_policy, 0.0)


@dataclasses.dataclass(frozen=True)
class TargetRule:
  """The Bellman target of the greedy or of a soft policy.

  Attributes:
    predict: calls networks.
    network: the online network.
    target_network: what gives the target's distribution.
    double: whether the online network chooses the action.
    munchausen: the soft policy; the greedy one if None.
  """

  predict: predicting.Predictor
  network: network.Network
  target_network: network.Network
  double: bool = False
  munchausen: Optional[Munchausen] = None

  def __call__(self, data: transitions.Transition) -> ReturnDistribution:
    """Distributions [B, M], with no gradient."""
    following = self.predict(
      self.target_network, data.next_observation, Use.TARGET
    )
    mask, reward = self.predict.mask(data.next_observation), data.reward
    if self.munchausen is None:
      expected = self._choosing(data.next_observation, following).mean()
      following = greedy(following, expected, mask)
    else:
      following = self.munchausen.soft(following, mask)
      now = self.predict(self.target_network, data.observation, Use.BONUS)
      mask = self.predict.mask(data.observation)
      reward += self.munchausen.bonus(now, data.action, mask)
    return bellman.backup(reward, data.discount, following)

  def _choosing(self, observation, following) -> ReturnDistribution:
    """The distributions [B, A, N] whose means choose the action."""
    if self.double:
      return self.predict(self.network, observation, Use.CHOICE)
    if self.predict.samples is not None:  # independent of what is backed up
      return self.predict(self.target_network, observation, Use.CHOICE)
    return following
