"""Plays a batch of environments, as a function of a state and of weights.

What an actor plays depends on its state, on the weights that it is given and on
the number of steps alone: not on the process, nor on when it plays. So another
thread, or a process elsewhere, can play while the learner learns.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors
from tf_mmdrl.policies import ArrayPlayer
from tf_mmdrl.train.exact_environment import EnvironmentState, ExactEnvironment


class Weights(NamedTuple):
  """What an actor plays by; a copy, which learning does not change.

  Attributes:
    values: of the network's variables, in their order.
    progress: [] the share of the run that is over, for schedules.
  """

  values: Sequence[tf.Tensor]
  progress: tf.Tensor


class Chunk(NamedTuple):
  """What an actor played.

  Attributes:
    trajectories: [B, ...] each, in the order of time, for replay.
    num_steps: of all environments together. A fresh start of the environments
      is in the trajectories and is no step.
    scores: of the games that ended.
  """

  trajectories: List[trajectory.Trajectory]
  num_steps: int
  scores: List[float]


class Actor:
  """Steps environments with a player of its own.

  Attributes:
    environment: what it plays.
    step: steps taken, over all environments.
  """

  def __init__(
    self,
    environment: ExactEnvironment,
    player: ArrayPlayer,
    variables: Sequence[tf.Variable],
    epsilon: Callable[[int], float],
  ):
    """Plays nothing yet.

    Args:
      environment: a batch of environments.
      player: who chooses actions.
      variables: of the player, which `Weights` go into: its network's, then
        the progress.
      epsilon: step -> the share of random actions.
    """
    self.environment = environment
    self.step = 0
    self._player = player
    self._epsilon = epsilon
    self._running = np.zeros([len(environment.time_step.step_type)])

    @tf.function(autograph=False)
    def load(*values):
      for variable, value in zip(variables, values, strict=True):
        variable.assign(value)

    self._load = load

  def play(self, weights: Weights, num_steps: int) -> Chunk:
    """Takes `num_steps` of each environment."""
    self._load(*weights.values, weights.progress)
    before = self.step
    trajectories: List[trajectory.Trajectory] = []
    scores: List[float] = []
    for _ in range(num_steps):
      if self.environment.is_due:
        trajectories.append(self._start_afresh())
      time_step = self.environment.time_step
      actions = self._player(time_step, self._epsilon(self.step), self.step)
      next_step = self.environment.step(actions)
      self._check(next_step)
      trajectories.append(_joined(time_step, actions, next_step))
      scores.extend(self._ended(next_step))
      self.step += len(actions)
    return Chunk(trajectories, self.step - before, scores)

  def state(self) -> Dict[str, Any]:
    """Counters and what the player keeps, as JSON values."""
    return {
      "step": self.step,
      "running": self._running.tolist(),
      "kept": self._player.kept.tolist(),
    }

  def set_state(
    self, state: Dict[str, Any], environment: EnvironmentState
  ) -> None:
    """Goes on from `state`, and the environments from theirs."""
    self.step = state["step"]
    self._running[:] = state["running"]
    self._player.kept = np.float32(state["kept"]).reshape([-1, 1])
    self.environment.set_state(environment)

  def _start_afresh(self) -> trajectory.Trajectory:
    """Cuts all episodes short, in replay too: LAST, with the discount of 1."""
    time_step = self.environment.time_step
    last = np.full_like(time_step.step_type, ts.StepType.LAST)
    actions = np.zeros([len(last)], np.int64)
    self._running[:] = 0
    cut = time_step._replace(step_type=last)
    return _joined(cut, actions, self.environment.rebuild())

  def _ended(self, time_step: ts.TimeStep) -> List[float]:
    """The scores of the games that this step ends."""
    self._running += self.environment.raw_reward
    over = time_step.step_type == ts.StepType.LAST
    scores = self._running[over].tolist()
    self._running[over] = 0
    return scores

  def _check(self, time_step: ts.TimeStep) -> None:
    """Stops before a bad number reaches replay and a checkpoint."""
    for name in ("reward", "observation"):
      values = np.asarray(getattr(time_step, name))
      if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = values[~np.isfinite(values)].reshape([-1])[0]
        raise errors.UserError(
          f"the environment gave the {name} {bad} at step {self.step}; the"
          " last checkpoint is whole: mend the environment and run again"
        )


def _joined(time_step, actions, next_step) -> trajectory.Trajectory:
  step = policy_step.PolicyStep(actions)
  return trajectory.from_transition(time_step, step, next_step)
