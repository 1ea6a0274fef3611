"""From TF-Agents' experience to what one example teaches."""

from typing import NamedTuple, Optional

import tensorflow as tf
from tf_agents.trajectories import trajectory
from tf_agents.typing import types

from tf_mmdrl.core import errors
from tf_mmdrl.ops import bellman

# What the info of a transition's action may say of the next state's actions.
NEXT_PROBABILITIES = "next_probabilities"
NEXT_MASK = "next_mask"


class NStepReturn(NamedTuple):
  """The return that an agent learns.

  Attributes:
    n: steps whose rewards are summed.
    gamma: discount of a step.
    reward_scale_factor: what multiplies rewards.
  """

  n: int
  gamma: float
  reward_scale_factor: float


class Transition(NamedTuple):
  """What one example teaches.

  Attributes:
    observation: nest of [B, ...].
    action: [B].
    reward: [B] n-step reward.
    discount: [B] what multiplies the next state's return.
    next_observation: nest of [B, ...].
    mask: [B] 0 where the example starts at an episode's end, 1 elsewhere.
    next_probabilities: [B, A] of the next state's actions under the policy
      that is evaluated; None to learn the best policy.
    next_mask: [B, A] of the next state's actions that may be the best; None
      for all.
  """

  observation: types.NestedTensor
  action: tf.Tensor
  reward: tf.Tensor
  discount: tf.Tensor
  next_observation: types.NestedTensor
  mask: tf.Tensor
  next_probabilities: Optional[tf.Tensor] = None
  next_mask: Optional[tf.Tensor] = None


class Steps(NamedTuple):
  """n steps summed up to one transition, without observations.

  Attributes:
    reward: [B] n-step reward.
    discount: [B] what multiplies the next state's return.
    horizon: [B] steps to the next state; None if there are n.
    mask: [B] 0 where the example starts at an episode's end, 1 elsewhere.
  """

  reward: tf.Tensor
  discount: tf.Tensor
  horizon: Optional[tf.Tensor]
  mask: tf.Tensor


def steps(experience, *, n: int, gamma: float) -> Steps:
  """Rewards and discounts of experience; the arguments of `as_transition`."""
  if isinstance(experience, trajectory.Transition):
    next_step = experience.next_time_step
    return Steps(
      next_step.reward,
      gamma * next_step.discount,
      None,
      tf.cast(~experience.time_step.is_last(), tf.float32),
    )
  if experience.step_type.shape[1] != n + 1:
    raise errors.UserError(
      f"experience of [B, {n + 1}] steps is wanted for n_step_update = {n},"
      f" got {experience.step_type.shape}; sample with num_steps = {n + 1}"
    )
  is_last = experience.is_boundary()  # the step itself, not the next
  summed = bellman.n_step(
    experience.reward[:, :-1],
    experience.discount[:, :-1],
    is_last[:, :-1],
    gamma=gamma,
  )
  return Steps(*summed, tf.cast(~is_last[:, 0], tf.float32))


def as_transition(experience, *, n: int, gamma: float) -> Transition:
  """n-step transitions of experience.

  Args:
    experience: a Trajectory [B, n + 1], or a Transition [B] whose discount is
      the environment's, and whose action's info may be a dictionary with
      `NEXT_PROBABILITIES` or `NEXT_MASK`, each [B, A]. A trajectory's
      observations may be those of its first and last step alone, [B, 2], if
      no example runs over the end of an episode that was cut off.
    n: steps to sum.
    gamma: the agent's discount.

  Returns:
    The transitions.
  """
  reward, discount, horizon, mask = steps(experience, n=n, gamma=gamma)
  if isinstance(experience, trajectory.Transition):
    step, action_step, next_step = experience
    info = action_step.info if isinstance(action_step.info, dict) else {}
    return Transition(
      step.observation,
      action_step.action,
      reward,
      discount,
      next_step.observation,
      mask,
      info.get(NEXT_PROBABILITIES),
      info.get(NEXT_MASK),
    )

  def at_horizon(part):
    if part.shape[1] == 2:
      return part[:, 1]
    return tf.gather(part, horizon, axis=1, batch_dims=1)

  return Transition(
    tf.nest.map_structure(lambda part: part[:, 0], experience.observation),
    experience.action[:, 0],
    reward,
    discount,
    tf.nest.map_structure(at_horizon, experience.observation),
    mask,
  )
