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


class ReturnPolicy(tf_policy.TFPolicy):
  """Actions by the mean of their return distribution.

  As TF-Agents' QPolicy, it gives the expected returns as logits, for a greedy,
  epsilon-greedy or Boltzmann wrapper to choose by.
  """

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network: network.Network,
    *,
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
      observation_and_action_constraint_splitter: observation -> (the network's
        part, `[B, A]` mask of the actions allowed).
      emit_log_probability: whether the policy's info has log-probabilities.
      emit_particles: whether the policy's info is `{"particles": [B, A, N]}`.
      name: of the policy.
    """
    specs.num_actions(action_spec)
    self._network = return_network
    self._emit_particles = emit_particles
    info_spec: types.NestedTensorSpec = ()
    if emit_particles:
      shape = return_network.create_variables().shape[-2:]
      info_spec = {"particles": tf.TensorSpec(shape, tf.float32, "particles")}
    super().__init__(
      time_step_spec,
      action_spec,
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
    particles, _ = self._network(observation, step_type=time_step.step_type)
    expected = ReturnDistribution.of(particles).mean()
    logits = allowed(expected, mask)
    spec = tf.nest.flatten(self.action_spec)[0]
    distribution = tfp.distributions.Categorical(
      logits=logits, dtype=spec.dtype
    )
    return policy_step.PolicyStep(
      tf.nest.pack_sequence_as(self.action_spec, [distribution]),
      policy_state,
      {"particles": particles} if self._emit_particles else (),
    )


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
