"""Plays a batch of environments, as a function of a state and of weights.

What an actor plays depends on the state and the weights that it is given and on
the number of steps alone: not on the process, nor on what it played before. So
another thread, or a process elsewhere, can play while the learner learns.
"""

from typing import (
  Any,
  Callable,
  Dict,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.environments import checked
from tf_mmdrl.policies import ArrayPlayer
from tf_mmdrl.train.environment_states import EnvironmentState, Moment
from tf_mmdrl.train.exact_environment import ExactEnvironment


class Weights(NamedTuple):
  """What an actor plays by; a copy, which learning does not change.

  Attributes:
    values: the values of the network's variables, in their order.
    progress: [] the share of the run that is over, for schedules.
  """

  values: Sequence[tf.Tensor]
  progress: tf.Tensor


class ActorState(NamedTuple):
  """Where an actor is: with weights, all that decides what it plays next.

  Attributes:
    step: steps that it has taken, over its environments.
    running: [B] scores so far of the games under way, or [B, D].
    kept: [B, 1], what the player keeps through an episode.
    moment: where the environments are.
  """

  step: int
  running: np.ndarray
  kept: np.ndarray
  moment: Moment


class Chunk(NamedTuple):
  """What an actor played.

  Attributes:
    trajectories: [B, ...] each, in the order of time, for replay.
    num_steps: how many steps were taken in all environments together. A fresh
      start of the environments is in the trajectories and is no step.
    scores: the scores of the games that ended; lists of D numbers if rewards
      are vectors.
    last_end: how many of these steps had been taken when the last of these
      games ended; 0 if none has.
  """

  trajectories: List[trajectory.Trajectory]
  num_steps: int
  scores: List[Any]
  last_end: int


class Actor:
  """Steps environments with a player of its own."""

  def __init__(
    self,
    environment: ExactEnvironment,
    player: ArrayPlayer,
    variables: Sequence[tf.Variable],
    epsilon: Callable[[np.ndarray], np.ndarray],
  ):
    """Plays nothing yet.

    Args:
      environment: a batch of environments.
      player: who chooses actions.
      variables: the player's variables, which `Weights` go into: its network's,
        then the progress.
      epsilon: [T] steps of this actor -> [T] shares of random actions.
    """
    self.environment = environment
    self._player = player
    self._epsilon = epsilon

    @tf.function(autograph=False)
    def load(*values):
      for variable, value in zip(variables, values, strict=True):
        variable.assign(value)

    self._load = load

  @property
  def problem(self) -> Optional[str]:
    """Why a run could not go on exactly from the newest state, if so."""
    return self.environment.problem

  @property
  def replayed_because(self) -> Optional[str]:
    """Why the environments' state cannot be saved; None if it can."""
    return self.environment.replayed_because

  def close(self) -> None:
    """Closes the environments."""
    self.environment.close()

  def begin(self) -> ActorState:
    """The state before the first step."""
    batch = len(self.environment.time_step.step_type)
    kept = np.zeros([batch, 1], np.float32)
    running = np.zeros(self.environment.time_step.reward.shape)
    return ActorState(0, running, kept, self.environment.moment)

  def play(
    self, state: ActorState, weights: Weights, num_steps: int
  ) -> Tuple[Chunk, ActorState]:
    """Takes `num_steps` of each environment, from `state` on."""
    self._load(*weights.values, weights.progress)
    environment, player = self.environment, self._player
    environment.go_to(state.moment)
    player.kept = state.kept
    batch, step = len(state.running), state.step
    epsilons = self._epsilon(step + batch * np.arange(num_steps))
    games = _Games(state.running.copy())
    trajectories: List[trajectory.Trajectory] = []
    try:
      with environment.noticing():
        for epsilon in epsilons.tolist():
          if environment.is_due:
            trajectories.append(self._start_afresh())
            games.cut()
          time_step = environment.time_step
          actions = player(time_step, epsilon, step)
          next_step = environment.step(actions)
          _check(next_step)
          trajectories.append(_joined(time_step, actions, next_step))
          step += batch
          games.add(next_step, environment.raw_reward, step - state.step)
    except checked.MisbehavedError as error:
      raise checked.MisbehavedError(
        f"{error}, at step {step}; mend the environment"
      ) from error
    num_steps = step - state.step
    chunk = Chunk(trajectories, num_steps, games.scores, games.last_end)
    moment = environment.moment
    return chunk, ActorState(step, games.running, player.kept, moment)

  def save(self, state: ActorState) -> Tuple[Dict[str, Any], EnvironmentState]:
    """`state` as JSON values, and that of the environments."""
    self.environment.go_to(state.moment)
    plain = {
      "step": state.step,
      "running": state.running.tolist(),
      "kept": state.kept.tolist(),
    }
    return plain, self.environment.state()

  def restored(
    self, plain: Dict[str, Any], environment: EnvironmentState
  ) -> ActorState:
    """The state from which `save` made these."""
    self.environment.set_state(environment)
    return ActorState(
      plain["step"],
      np.array(plain["running"], np.float64),
      np.float32(plain["kept"]).reshape([-1, 1]),
      self.environment.moment,
    )

  def _start_afresh(self) -> trajectory.Trajectory:
    """Cuts all episodes short, in replay too: LAST, with the discount of 1."""
    time_step = self.environment.time_step
    last = np.full_like(time_step.step_type, ts.StepType.LAST)
    actions = np.zeros([len(last)], np.int64)
    cut = time_step._replace(step_type=last)
    return _joined(cut, actions, self.environment.rebuild())


class _Games:
  """Adds up rewards: `running` so far; the others are a chunk's."""

  def __init__(self, running: np.ndarray):
    self.running = running
    self.scores: List[Any] = []
    self.last_end = 0

  def add(self, time_step: ts.TimeStep, reward: np.ndarray, steps: int) -> None:
    self.running += reward
    over = time_step.step_type == ts.StepType.LAST
    if over.any():
      self.scores.extend(self.running[over].tolist())
      self.running[over] = 0
      self.last_end = steps

  def cut(self) -> None:
    self.running[:] = 0


def _check(time_step: ts.TimeStep) -> None:
  """Stops before a bad number reaches replay and a checkpoint."""
  for name in ("reward", "observation"):
    values = np.asarray(getattr(time_step, name))
    if values.dtype.kind == "f" and not np.isfinite(values).all():
      bad = values[~np.isfinite(values)].reshape([-1])[0]
      raise checked.MisbehavedError(f"the environment gave the {name} {bad}")


def _joined(time_step, actions, next_step) -> trajectory.Trajectory:
  step = policy_step.PolicyStep(actions)
  return trajectory.from_transition(time_step, step, next_step)
