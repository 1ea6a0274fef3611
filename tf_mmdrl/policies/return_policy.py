"""Policies over the return distribution of each action."""

from typing import Any, Optional, Union

import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.networks import network
from tf_agents.policies import tf_policy
from tf_agents.trajectories import policy_step
from tf_agents.typing import types

from tf_mmdrl.core import choosing, specs
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.policies import player, scores


class ReturnPolicy(tf_policy.TFPolicy):
  """The action with the largest score, or with probability epsilon any.

  The score is of an action's return distribution, the mean by default. What is
  random comes from TensorFlow's generator, or from the `seed` [2] that `action`
  is given.
  """

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network: network.Network,
    *,
    score: scores.Score = scores.Mean(),  # noqa: B008  (it is frozen)
    epsilon: types.FloatOrReturningFloat = 0.0,
    noisy: bool = False,
    observation_and_action_constraint_splitter: Optional[types.Splitter] = None,
    emit_log_probability: bool = False,
    emit_particles: bool = False,
    name: str = "ReturnPolicy",
  ):
    """Makes the policy.

    Args:
      time_step_spec: the spec of the time steps of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> `[B, A, N]`.
      score: what to choose by; see `scores`.
      epsilon: the probability of a random action; a number or a function.
      noisy: whether the noise in the network's weights is on, to explore. The
        levels of an implicit head are even, noise or not.
      observation_and_action_constraint_splitter: observation -> (the network's
        part, `[B, A]` mask of the actions allowed).
      emit_log_probability: whether the policy's info has log-probabilities.
      emit_particles: whether the policy's info is `{"particles": [B, A, N]}`.
      name: the name of the policy.
    """
    self._player = player.Player(
      return_network,
      specs.num_actions(action_spec),
      score=score,
      noisy=noisy,
      splitter=observation_and_action_constraint_splitter,
    )
    self._network = return_network
    self._epsilon = epsilon
    keeps = score.draws is scores.Draws.EACH_EPISODE
    state_spec = tf.TensorSpec([1], tf.float32, "draw") if keeps else ()
    self._emit_particles = emit_particles
    info_spec: types.NestedTensorSpec = ()
    if emit_particles:
      output = return_network.create_variables()
      shape = ReturnDistribution.of(output).values.shape
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

  def _action(self, time_step, policy_state, seed=None):
    drawn, seen = self._look(time_step, policy_state, seed)
    epsilon = self._epsilon_now()
    actions = choosing.choose(seen.scores, seen.mask, epsilon, drawn)
    info: Any = self._info(seen)
    if self.emit_log_probability:
      all_of = tf.math.log(self._probabilities(seen, epsilon))
      info = policy_step.set_log_probability(
        info, tf.gather(all_of, actions, batch_dims=1)
      )
    dtype = tf.nest.flatten(self.action_spec)[0].dtype
    return self._step(tf.cast(actions, dtype), seen, info)

  def _distribution(self, time_step, policy_state):
    """The probabilities of actions, given what a score draws, if it does."""
    _, seen = self._look(time_step, policy_state, None)
    distribution = tfp.distributions.Categorical(
      probs=self._probabilities(seen, self._epsilon_now()),
      dtype=tf.nest.flatten(self.action_spec)[0].dtype,
    )
    return self._step(distribution, seen, self._info(seen))

  def _look(self, time_step, policy_state, seed):
    is_first = time_step.is_first()
    batch = tf.shape(is_first)[0]
    drawn = choosing.chance(_seed(seed), batch, self._player.num_actions)
    kept = policy_state if self.policy_state_spec else tf.zeros([batch, 1])
    seen = self._player.view(time_step.observation, is_first, kept, drawn)
    return drawn, seen

  def _probabilities(self, seen: player.View, epsilon) -> tf.Tensor:
    logits = self._player.score.logits(seen.distributions)
    if logits is not None:
      logits = tf.nn.softmax(choosing.allowed(logits, seen.mask))
    return choosing.probabilities(seen.scores, seen.mask, epsilon, logits)

  def _epsilon_now(self) -> tf.Tensor:
    now = self._epsilon() if callable(self._epsilon) else self._epsilon
    return tf.cast(now, tf.float32)

  def _info(self, seen: player.View):
    return (
      {"particles": seen.distributions.values} if self._emit_particles else ()
    )

  def _step(self, action, seen: player.View, info) -> policy_step.PolicyStep:
    return policy_step.PolicyStep(
      tf.nest.pack_sequence_as(self.action_spec, [action]),
      seen.kept if self.policy_state_spec else (),
      info,
    )


def _seed(seed: Optional[Union[int, tf.Tensor]]) -> tf.Tensor:
  """int [2]: the one given, or a draw from TensorFlow's generator."""
  if seed is not None and not isinstance(seed, int):
    return tf.convert_to_tensor(seed)
  return tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32, seed=seed)
