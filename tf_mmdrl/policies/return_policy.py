"""Policies over the return distribution of each action."""

from typing import Optional

import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.networks import network
from tf_agents.policies import (
  boltzmann_policy,
  epsilon_greedy_policy,
  greedy_policy,
  tf_policy,
)
from tf_agents.trajectories import policy_step
from tf_agents.typing import types

from tf_mmdrl.core import specs
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.policies import scores


class ReturnPolicy(tf_policy.TFPolicy):
  """Actions by a score of their return distribution, the mean by default.

  As TF-Agents' QPolicy, it gives the scores as logits, for a greedy,
  epsilon-greedy or Boltzmann wrapper to choose by.
  """

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network: network.Network,
    *,
    score: scores.Score = scores.Mean(),  # noqa: B008  (it is frozen)
    noisy: bool = False,
    observation_and_action_constraint_splitter: Optional[types.Splitter] = None,
    emit_log_probability: bool = False,
    emit_particles: bool = False,
    name: str = "ReturnPolicy",
  ):
    """Makes the policy.

    Args:
      time_step_spec: of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> `[B, A, N]`.
      score: what to choose by; see `scores`.
      noisy: whether the noise in the network's weights is on, to explore. The
        levels of an implicit head are even, noise or not.
      observation_and_action_constraint_splitter: observation -> (the network's
        part, `[B, A]` mask of the actions allowed).
      emit_log_probability: whether the policy's info has log-probabilities.
      emit_particles: whether the policy's info is `{"particles": [B, A, N]}`.
      name: of the policy.
    """
    self._num_actions = specs.num_actions(action_spec)
    self._network = return_network
    self._score = score
    self._noisy = noisy
    keeps = score.draws is scores.Draws.EACH_EPISODE
    state_spec = tf.TensorSpec([1], tf.float32, "draw") if keeps else ()
    self._emit_particles = emit_particles
    info_spec: types.NestedTensorSpec = ()
    if emit_particles:
      output = return_network.create_variables()
      shape = ReturnDistribution.of(output).values.shape[-2:]
      info_spec = {"particles": tf.TensorSpec(shape, tf.float32, "particles")}
    super().__init__(
      time_step_spec,
      action_spec,
      policy_state_spec=state_spec,
      info_spec=info_spec,
      clip=False,
      emit_log_probability=emit_log_probability,
      observation_and_action_constraint_splitter=(
        observation_and_action_constraint_splitter
      ),
      name=name,
    )

  def _variables(self):
    return self._network.variables

  def _distribution(self, time_step, policy_state):
    observation, mask = split(
      time_step.observation, self.observation_and_action_constraint_splitter
    )
    options = {}
    if self._noisy and getattr(self._network, "is_noisy", False):
      options["seed"] = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32)
      options["even_levels"] = True
    output, _ = self._network(
      observation, step_type=time_step.step_type, **options
    )
    distributions = ReturnDistribution.of(output)
    uniform, policy_state = self._draw(time_step, policy_state)
    logits = allowed(self._score(distributions, uniform), mask)
    spec = tf.nest.flatten(self.action_spec)[0]
    distribution = tfp.distributions.Categorical(
      logits=logits, dtype=spec.dtype
    )
    return policy_step.PolicyStep(
      tf.nest.pack_sequence_as(self.action_spec, [distribution]),
      policy_state,
      {"particles": distributions.values} if self._emit_particles else (),
    )

  def _draw(self, time_step, policy_state):
    """What the score draws from, and the new state."""
    batch = tf.shape(time_step.step_type)
    draws = self._score.draws
    if draws is scores.Draws.EACH_STEP:
      shape = tf.concat([batch, [self._num_actions]], axis=0)
      return tf.random.uniform(shape), policy_state
    if draws is scores.Draws.EACH_EPISODE:
      fresh = tf.random.uniform(tf.concat([batch, [1]], axis=0))
      first = time_step.is_first()[..., tf.newaxis]
      kept = tf.where(first, fresh, policy_state)
      return kept, kept
    return tf.zeros([]), policy_state


def split(observation, splitter):
  """(the network's observation, the mask of allowed actions or None)."""
  return (observation, None) if splitter is None else splitter(observation)


def allowed(expected: tf.Tensor, mask: Optional[tf.Tensor]) -> tf.Tensor:
  """Expected returns [B, A] with the lowest number where the mask forbids."""
  if mask is None:
    return expected
  return tf.where(tf.cast(mask, tf.bool), expected, expected.dtype.min)


def greedy(policy: tf_policy.TFPolicy) -> tf_policy.TFPolicy:
  """The action of the largest expected return."""
  return greedy_policy.GreedyPolicy(policy)


def exploring(
  policy: tf_policy.TFPolicy,
  *,
  epsilon: types.FloatOrReturningFloat,
  boltzmann_temperature: Optional[types.FloatOrReturningFloat] = None,
) -> tf_policy.TFPolicy:
  """Boltzmann if a temperature is given, epsilon-greedy otherwise."""
  if boltzmann_temperature is not None:
    return boltzmann_policy.BoltzmannPolicy(
      policy, temperature=boltzmann_temperature
    )
  return epsilon_greedy_policy.EpsilonGreedyPolicy(policy, epsilon=epsilon)
