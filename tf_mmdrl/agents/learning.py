"""The update that every agent here shares: from experience to new weights.

In order: trajectory `[B, n + 1]` -> n-step transition -> distribution of the
action taken -> target rule -> backup -> loss `[B]` -> episode mask x
importance weights -> mean -> gradients, clipped -> optimizer.
"""

import functools
from typing import Optional

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.utils import common, eager_utils

from tf_mmdrl.agents import (
  checks,
  compiling,
  optimizers,
  sight,
  targets,
  transitions,
  updates,
)
from tf_mmdrl.agents.auxiliary import Auxiliary, Batch
from tf_mmdrl.agents.predicting import Use
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import Loss
from tf_mmdrl.policies import player


class Learning:
  """Computes updates of a network's weights, and applies them.

  Attributes:
    target_rule: what the network should predict.
    compute: (experience, weights) -> the `Update`, compiled; changes nothing.
  """

  def __init__(
    self,
    target_rule: targets.TargetRule,
    loss: Loss,
    auxiliary: Optional[Auxiliary],
    groups: optimizers.Groups,
    returns: transitions.NStepReturn,
    *,
    gradient_clipping: Optional[float],
    plan: compiling.Plan,
  ):
    """Compiles what is to be compiled, at its first call.

    Args:
      target_rule: what the network should predict; it knows the networks, how
        they are called, and the train step.
      loss: (predicted, target, step) -> [B].
      auxiliary: what else learns, or None.
      groups: the weights that learn.
      returns: what is learnt.
      gradient_clipping: norm to clip each gradient to, or None.
      plan: what XLA compiles.
    """
    self._net = target_rule.network
    self.target_rule = target_rule
    self._predict = target_rule.predict
    self._loss = loss
    self._auxiliary = auxiliary
    self._groups = groups
    self._step = target_rule.predict.step
    self._returns = returns
    self._gradient_clipping = gradient_clipping
    # Without autograph, which would hide errors behind its own.
    compiled = functools.partial(tf.function, autograph=False)
    self.compute = compiled(self._compute, jit_compile=plan.networks)
    self._losses = compiled(loss.__call__, jit_compile=plan.pieces)
    self._apply = compiled(groups.apply, jit_compile=plan.pieces)

  def update(self, experience, weights) -> updates.Update:
    """Computes an update, applies it if all is finite, and counts it."""
    update = self.compute(experience, weights)
    finite = updates.stop_unless_finite(update.bad, self._step)
    with tf.control_dependencies([] if finite is None else [finite]):
      if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        # Replicas exchange gradients, which a compiled function may not do.
        self._groups.apply(update.gradients)
      else:
        self._apply(update.gradients)
      self._step.assign_add(1)
    return update

  def attempt(self, experience, weights) -> updates.Update:
    """As `update`, but raises nothing: what is not finite changes nothing.

    For XLA, which cannot stop. There a choice between new and old values costs
    nothing, because it is made where the new ones are computed.

    Args:
      experience: a batch.
      weights: [B] importance weights, or None.

    Returns:
      The update; whether it was applied is `finite`.
    """
    update = self.compute(experience, weights)
    variables = self._groups.add_variables([])
    before = [tf.identity(variable) for variable in variables]
    self._apply(update.gradients)
    for variable, old in zip(variables, before):
      variable.assign(tf.where(update.finite, variable, old))
    self._step.assign_add(tf.cast(update.finite, self._step.dtype))
    return update

  def forward(self, experience, weights, training: bool) -> updates.Update:
    """The loss of a batch of experience, without gradients."""
    n, gamma, reward_scale_factor = self._returns
    data = transitions.as_transition(experience, n=n, gamma=gamma)
    predicted = self._predict(
      self._net, data.observation, Use.TAKEN, training
    ).at(data.action)
    reward = reward_scale_factor * data.reward / self._net.unit
    target = self.target_rule(data._replace(reward=reward))
    step = tf.identity(self._step)
    losses = self._losses(predicted, target, step)
    checks.check_losses(losses, self._loss)
    losses *= data.mask
    total = common.aggregate_losses(
      per_example_loss=losses,
      sample_weight=weights,
      regularization_loss=self._net.losses,
    ).total_loss
    auxiliary_loss = self._auxiliary_loss(
      data, predicted, target, step, weights
    )
    td_error = self._net.unit * (target.mean() - predicted.mean())
    if td_error.shape.rank == 2:  # of joint returns the length
      td_error = tf.norm(td_error, axis=1)
    td_error *= data.mask
    # Observations on their own: a ReLU may turn NaN into 0.
    parts = (
      (data.observation, data.next_observation),
      data.reward,
      predicted.values,
      target.values,
      (total, auxiliary_loss),
    )
    bad = dict(zip(updates.KINDS, map(updates.num_bad, parts), strict=True))
    return updates.Update(
      tf_agent.LossInfo(total, dqn_agent.DqnLossInfo(losses, td_error)),
      auxiliary_loss,
      self._natural(predicted),
      self._natural(target),
      bad,
      beyond_reach=tf.zeros([]),
      gradients=[],
      finite=updates.is_finite(bad),
    )

  def _auxiliary_loss(
    self, data: transitions.Transition, predicted, target, step, weights
  ) -> tf.Tensor:
    """[] the mean loss of what else learns; 0 if nothing does."""
    if self._auxiliary is None:
      return tf.zeros([])
    observation, _ = player.split(data.observation, self._predict.splitter)
    batch = Batch(observation, data.action, predicted, target, step)
    losses = data.mask * self._auxiliary.loss(self._net, batch)
    return common.aggregate_losses(
      per_example_loss=losses, sample_weight=weights
    ).total_loss

  def _natural(self, distribution: ReturnDistribution) -> ReturnDistribution:
    return distribution.map_values(lambda z: self._net.unit * z)

  def _compute(self, experience, weights) -> updates.Update:
    """The loss, and its gradients, clipped."""
    variables = self._groups.weights()
    with tf.GradientTape() as tape:
      update = self.forward(experience, weights, training=True)
      # Each loss has no gradient in the other's weights, so one pass does.
      objective = update.loss_info.loss + update.auxiliary_loss
    gradients = tape.gradient(objective, variables)
    if self._gradient_clipping is not None:
      pairs = eager_utils.clip_gradient_norms(
        list(zip(gradients, variables)), self._gradient_clipping
      )
      gradients = [gradient for gradient, _ in pairs]
    return update._replace(
      gradients=gradients, beyond_reach=self._share_beyond(update)
    )

  def _share_beyond(self, update: updates.Update) -> tf.Tensor:
    """[] the share out of reach, if it is time to look; 0 otherwise."""
    if not self._loss.has_reach:
      return tf.zeros([])
    predicted, target = (
      part.map_values(lambda z: z / self._net.unit)
      for part in (update.predicted, update.target)
    )

    def share():
      error, step = update.loss_info.extra.td_error, tf.identity(self._step)
      found = self._loss.share_beyond(predicted, target, error, step)
      return tf.minimum(found, 1.0)  # weights may sum to a little more

    return tf.cond(sight.is_due(self._step), share, lambda: tf.zeros([]))
