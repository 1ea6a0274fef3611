"""Target rules: from a transition to the distribution it should predict."""

import dataclasses
import math
from typing import Any, Optional, Tuple

import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.agents import predicting, transitions
from tf_mmdrl.agents.predicting import Use
from tf_mmdrl.core import choosing, draws, errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bellman
from tf_mmdrl.policies import player
from tf_mmdrl.policies.scores import Mean, Score

# The lowest and the highest return that there can be, each [] or [D].
Bounds = Tuple[Any, Any]
# The logarithm of no probability: exp gives 0, and sums stay finite.
_NEVER = -1e4


def greedy(
  distributions: ReturnDistribution,
  scores: tf.Tensor,
  mask: Optional[tf.Tensor],
) -> ReturnDistribution:
  """The distribution of the action with the largest score.

  By default the action maximises the *mean* of the particles (Algorithm 3,
  line 6); a maximum over actions particle by particle is the return of no
  policy.

  Args:
    distributions: [B, A, M], of the target network.
    scores: [B, A], of the network that chooses.
    mask: [B, A] of the actions allowed, or None.

  Returns:
    Distributions of [B, M].
  """
  return distributions.at(choosing.largest(scores, mask))


def mixture(
  distributions: ReturnDistribution, log_probabilities: tf.Tensor
) -> ReturnDistribution:
  """The distribution of Z(s', a') for a' ~ pi, exactly.

  This is Algorithm 1's evaluation branch with nothing drawn: instead of one
  action of the policy, all of them with their probabilities.

  Args:
    distributions: [B, A, M] particles, or [B, A, M, D] of vector returns.
    log_probabilities: [B, A] of the policy pi(. | s').

  Returns:
    Distributions of [B, A M], or [B, A M, D], with weights pi(a') / M.
  """
  values, own = distributions.values, distributions.log_weights
  if own is None:
    own = tf.fill(tf.shape(values)[:3], -math.log(values.shape[2]))
  log_weights = tf.maximum(log_probabilities, _NEVER)[..., tf.newaxis] + own
  flat = [-1, values.shape[1] * values.shape[2]]
  return type(distributions)(
    tf.reshape(values, [*flat, *values.shape[3:]]),
    tf.reshape(log_weights, flat),
  )


def drawn(
  distributions: ReturnDistribution,
  probabilities: tf.Tensor,
  uniform: tf.Tensor,
) -> ReturnDistribution:
  """The distribution of one action a* ~ pi (Algorithm 1, line 2).

  For losses that give all particles of a target the same weight.

  Args:
    distributions: [B, A, M].
    probabilities: [B, A] of the policy pi(. | s').
    uniform: [B] in (0, 1), which decide the actions.

  Returns:
    Distributions of [B, M].
  """
  cumulative = tf.cumsum(probabilities, axis=1)
  below = cumulative <= uniform[:, tf.newaxis] * cumulative[:, -1:]
  return distributions.at(tf.reduce_sum(tf.cast(below, tf.int32), axis=1))


def within(
  distributions: ReturnDistribution, bounds: Bounds, unit: Any = 1.0
) -> ReturnDistribution:
  """The distributions [...], cut at what returns there can be.

  Bootstrapped where there is no data, values can follow each other away without
  end; no return is beyond what the rewards allow.

  Args:
    distributions: in units.
    bounds: in natural rewards.
    unit: natural rewards of a unit, [] or [D].

  Returns:
    The distributions, in units.
  """
  low, high = (tf.cast(bound, tf.float32) / unit for bound in bounds)
  return distributions.map_values(
    lambda z: tf.maximum(tf.minimum(z, high), low)
  )


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
    bonus = scaled[..., tf.newaxis]
    return mixture(distributions.map_values(lambda z: z - bonus), log_policy)

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
  """The Bellman target of the greedy, of a soft or of a given policy.

  Attributes:
    predict: calls networks.
    network: the online network.
    target_network: what gives the target's distribution.
    double: whether the online network chooses the action.
    munchausen: the soft policy; the greedy one if None.
    weighted: whether the loss heeds the weights of a target's particles. If
      not, the action of a given policy is drawn, from the seed and the step.
    score: what the greedy policy maximises, of distributions in natural
      rewards.
    bounds: the lowest and the highest return that can follow, in natural
      rewards, each [] or [D]; targets are cut there. None if not known.
  """

  predict: predicting.Predictor
  network: network.Network
  target_network: network.Network
  double: bool = False
  munchausen: Optional[Munchausen] = None
  weighted: bool = True
  score: Score = Mean()  # noqa: RUF009  (it is frozen)
  bounds: Optional[Bounds] = None

  def __call__(self, data: transitions.Transition) -> ReturnDistribution:
    """Distributions [B, M], with no gradient."""
    following = self.predict(
      self.target_network, data.next_observation, Use.TARGET
    )
    mask, reward = self._mask(data), data.reward
    if data.next_probabilities is not None:
      following = self._evaluated(following, data.next_probabilities)
    elif self.munchausen is None:
      scores = self._scores(data.next_observation, following)
      following = greedy(following, scores, mask)
    else:
      following = self.munchausen.soft(following, mask)
      now = self.predict(self.target_network, data.observation, Use.BONUS)
      mask = self.predict.mask(data.observation)
      reward += self.munchausen.bonus(now, data.action, mask)
    if self.bounds is not None:
      following = within(following, self.bounds, self.network.unit)
    return bellman.backup(reward, data.discount, following)

  def _evaluated(self, following, probabilities) -> ReturnDistribution:
    """The return of the policy that is evaluated, not of a better one."""
    if self.weighted:
      return mixture(following, tf.math.log(probabilities))
    number = self.predict.step * len(Use) + Use.CHOICE
    seed = tf.stack([tf.constant(self.predict.seed, tf.int64), number])
    rows = [tf.shape(probabilities)[0]]
    uniform = draws.uniform_by_row(rows, seed)
    return drawn(following, probabilities, uniform)

  def _mask(self, data: transitions.Transition) -> Optional[tf.Tensor]:
    """[B, A] actions that the target may choose; None if all."""
    mask = self.predict.mask(data.next_observation)
    if mask is None or data.next_mask is None:
      return data.next_mask if mask is None else mask
    return tf.cast(mask, tf.bool) & tf.cast(data.next_mask, tf.bool)

  def _scores(self, observation, following) -> tf.Tensor:
    """[B, A], what the target's action maximises."""
    distributions = self._choosing(observation, following)
    if self.score == Mean():  # the same action in any unit
      return distributions.mean()
    natural = distributions.map_values(lambda z: self.network.unit * z)
    observation, _ = player.split(observation, self.predict.splitter)
    return self.score(self.score.see(natural, observation), tf.zeros([]))

  def _choosing(self, observation, following) -> ReturnDistribution:
    """The distributions [B, A, N] whose scores choose the action."""
    if self.double:
      return self.predict(self.network, observation, Use.CHOICE)
    if self.predict.samples is not None:  # independent of what is backed up
      return self.predict(self.target_network, observation, Use.CHOICE)
    return following
