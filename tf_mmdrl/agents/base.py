"""The agent that every algorithm here shares, of parts that each do one thing.

An algorithm is a head (the network), a target rule, the Bellman backup and a
loss. A training step: the unit follows returns (`unit`), weights are updated
(`learning`), and after every few updates the target network follows
(`network_pair`).
"""

import functools
from typing import Any, Callable, Optional, Union

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.networks import network
from tf_agents.policies import tf_policy
from tf_agents.typing import types

from tf_mmdrl import policies
from tf_mmdrl.agents import (
  checks,
  compiling,
  keywords,
  learning,
  network_pair,
  optimizers,
  predicting,
  sight,
  targets,
  train_step,
  transitions,
  updates,
)
from tf_mmdrl.agents import unit as units
from tf_mmdrl.agents.auxiliary import Auxiliary
from tf_mmdrl.losses import Loss
from tf_mmdrl.policies import player, scores


class ReturnDistributionAgent(tf_agent.TFAgent):
  """A value-based agent whose network emits return distributions.

  What makes an algorithm is its loss, and the auxiliary if it learns something
  besides returns. The keyword names are those of TF-Agents' DqnAgent.

  Attributes:
    network_example: what makes a network for the agent; errors quote it.
  """

  network_example = "ParticleNetwork(..., num_particles=200)"

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network: Optional[network.Network] = None,
    optimizer: Optional[types.Optimizer] = None,
    *,
    loss: Loss,
    auxiliary: Optional[Auxiliary] = None,
    score: scores.Score = scores.Mean(),  # noqa: B008  (it is frozen)
    observation_and_action_constraint_splitter: Optional[types.Splitter] = None,
    epsilon_greedy: types.FloatOrReturningFloat = 0.1,
    exploration: scores.Score = scores.Mean(),  # noqa: B008  (it is frozen)
    n_step_update: int = 1,
    boltzmann_temperature: Optional[types.FloatOrReturningFloat] = None,
    emit_log_probability: bool = False,
    target_return_network: Optional[network.Network] = None,
    target_update_tau: float = 1.0,
    target_update_period: int = 100,
    double: bool = False,
    munchausen: Optional[targets.Munchausen] = None,
    samples: Optional[predicting.Samples] = None,
    gamma: float = 1.0,
    unit: Union[str, float] = units.AUTO,
    reward_scale_factor: float = 1.0,
    return_bounds: Optional[targets.Bounds] = None,
    gradient_clipping: Optional[float] = None,
    seed: int = 0,
    jit_compile: Optional[bool] = None,
    debug_summaries: bool = False,
    summarize_grads_and_vars: bool = False,
    train_step_counter: Optional[tf.Variable] = None,
    training_data_spec=None,
    name: Optional[str] = None,
    **names,
  ):
    """Makes the agent.

    Args:
      time_step_spec: the spec of the time steps of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> particles `[B, A, N]`; `q_network`,
        `categorical_q_network` and `particle_network` are other names of it.
      optimizer: an optimizer of Keras or of tf.compat.v1.
      loss: (predicted, target, step) -> [B]; see `losses`.
      auxiliary: what else learns.
      score: what the greedy policy maximises, and the target's action with it.
      observation_and_action_constraint_splitter: observation -> (the network's
        part, `[B, A]` mask of the actions allowed).
      epsilon_greedy: exploration of the collect policy; a number or a function.
      exploration: what the collect policy chooses by: the mean, a draw, an
        upper confidence bound; see `policies.scores`. Of joint returns, of
        their utility.
      n_step_update: n.
      boltzmann_temperature: if given, the collect policy draws actions from a
        Boltzmann distribution instead.
      emit_log_probability: whether policies emit log-probabilities.
      target_return_network: a network for the targets; a copy if None.
      target_update_tau: the share of the online weights that goes into the
        target network at an update of it; 1 copies them.
      target_update_period: updates between two updates of the target network
        (1 in DqnAgent, which is no target network at all).
      double: whether the online network chooses the target's action (double
        Q-learning), not the target network (the paper).
      munchausen: a log-policy bonus and a soft target, instead of the greedy
        one; its constants are in units.
      samples: how many particles to draw, if the network's head is implicit.
      gamma: discount.
      unit: how many natural rewards one unit of return is, in which losses
        are computed; "auto" finds it from the rewards, "auto:X" so that returns
        are about X units.
      reward_scale_factor: what multiplies rewards.
      return_bounds: the lowest and the highest return that there can be, where
        targets are cut; None if not known.
      gradient_clipping: norm to clip each gradient to.
      seed: the seed of noise and draws; together with the train step it decides
        them.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      debug_summaries: whether to write histograms of particles and losses.
      summarize_grads_and_vars: whether to write those of gradients and weights.
      train_step_counter: counts the updates; a new variable if None.
      training_data_spec: the spec of the experience, if not the collect
        policy's.
      name: the name of the agent.
      **names: other names of the two networks; see `keywords`.
    """
    tf.Module.__init__(self, name=name)
    typed = type(self).__name__  # for errors
    networks = keywords.networks(
      type(self), return_network, target_return_network, names
    )
    keywords.check_optimizer(type(self), optimizer)
    checks.check_observation(time_step_spec.observation, typed)
    checks.check_options(n_step_update, munchausen, double)
    checks.check_network(networks.online, typed, implicit=samples is not None)
    self._check_network(networks.online)
    splitter = observation_and_action_constraint_splitter
    observation_spec, _ = player.split(time_step_spec.observation, splitter)
    dimensions = checks.reward_dimensions(time_step_spec.reward)
    self._networks = network_pair.make(
      *networks,
      observation_spec,
      action_spec,
      tau=target_update_tau,
      period=target_update_period,
      agent=typed,
      dimensions=dimensions,
    )
    # Checkpoints see no further than attributes.
    self._network, self._target_network = self._networks.both
    self._optimizer, self._auxiliary = optimizer, auxiliary
    self._loss_function = loss
    self._groups = optimizers.Groups(self._network, optimizer, auxiliary)
    returns = transitions.NStepReturn(n_step_update, gamma, reward_scale_factor)
    plan = compiling.resolve(jit_compile, self._network)
    if train_step_counter is None:
      # Not TF-Agents' global step, which all agents of a process would share.
      train_step_counter = units.state(0, tf.int64, "train_step")
    self._unit = units.Unit(unit, self._UNITS_OF_A_RETURN, dimensions)
    self._follow_unit = units.Follower(
      self._unit,
      self._networks,
      self._groups,
      returns,
      train_step_counter,
      plan,
      typed,
    )
    self._sight = sight.Sight(
      self._unit,
      unit_stays=self._follow_unit.stays,
      agent=typed,
      loss=loss,
    )
    self._predict = predicting.Predictor(
      splitter, samples, seed, train_step_counter
    )
    rule = targets.TargetRule(
      self._predict,
      *self._networks.both,
      double,
      munchausen,
      # Joint particles of all actions at once would make A^2 as many pairs.
      weighted=loss.heeds_weights and dimensions is None,
      score=score,
      bounds=return_bounds,
    )
    self._learning = learning.Learning(
      rule,
      loss,
      auxiliary,
      self._groups,
      returns,
      gradient_clipping=gradient_clipping,
      plan=plan,
    )
    self._train_step = train_step.TrainStep(
      self._follow_unit,
      self._learning,
      self._networks,
      self._sight,
      train_step_counter,
      plan,
    )
    self._make_policy = functools.partial(
      policies.ReturnPolicy,
      time_step_spec,
      action_spec,
      self._network,
      observation_and_action_constraint_splitter=splitter,
      emit_log_probability=emit_log_probability,
    )
    if boltzmann_temperature is not None:
      exploration, epsilon_greedy = scores.Boltzmann(boltzmann_temperature), 0.0
    exploration = score.by(exploration)
    super().__init__(
      time_step_spec,
      action_spec,
      self._make_policy(score=score),
      self._make_policy(score=exploration, epsilon=epsilon_greedy, noisy=True),
      train_sequence_length=n_step_update + 1,
      debug_summaries=debug_summaries,
      summarize_grads_and_vars=summarize_grads_and_vars,
      train_step_counter=train_step_counter,
      training_data_spec=training_data_spec,
    )

  @property
  def return_network(self) -> network.Network:
    """The online network."""
    return self._network

  def policy_by(self, score: scores.Score) -> tf_policy.TFPolicy:
    """The policy that takes the action with the largest score."""
    return self._make_policy(score=score)

  @property
  def unit(self) -> tf.Variable:
    """[] how many natural rewards one unit of return is; [D] of joint ones."""
    return self._network.unit

  @property
  def beyond_reach(self) -> tf.Variable:
    """[] the share of the targets that the loss does not see, averaged."""
    return self._sight.beyond

  def look(self, experience, weights=None) -> updates.Update:
    """What `train` would find in this experience; changes nothing."""
    return self._learning.compute(experience, weights)

  def train_in_turn(
    self, unpack: Callable[[Any], Any]
  ) -> train_step.TrainInTurn:
    """A function that trains on K batches, one after another, in one call.

    Args:
      unpack: what is kept of a batch -> experience.

    Returns:
      (nest of [K, ...], importance weights [K, B]) -> the losses, with K in
      front. It writes no summaries, and compiles at its first call.
    """
    return self._train_step.in_turn(unpack)

  def return_size(self) -> tf.Tensor:
    """[] or [D] root mean square of returns seen so far; 0 if unknown."""
    return self._unit.size()

  def state_variables(self) -> list:
    """All that decides how learning goes on.

    Returns:
      Weights, target weights, the optimizers' variables and the counter.
    """
    variables = self._groups.add_variables(
      [*self._network.variables, *self._target_network.variables]
    )
    own = [*self._unit.variables, *self._sight.variables]
    return [*variables, *own, self.train_step_counter]

  def _check_network(self, net: network.Network) -> None:
    """Raises if a network lacks what the algorithm needs of it."""

  # What unit="auto" aims at.
  _UNITS_OF_A_RETURN = units.WANTED

  def _initialize(self):
    self._networks.copy_to_target()

  def _train(self, experience, weights):
    update = self._train_step(experience, weights)
    updates.summarize(
      update,
      self._groups.weights(),
      self.train_step_counter,
      unit=self.unit,
      beyond_reach=self.beyond_reach,
      distributions=self._debug_summaries,
      gradients=self._summarize_grads_and_vars,
    )
    return update.loss_info

  def _loss(self, experience, weights=None, training=False):
    return self._learning.forward(experience, weights, training).loss_info
