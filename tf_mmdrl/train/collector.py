"""Plays a batch of environments into replay."""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Union

import numpy as np
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import replay
from tf_mmdrl.core import errors
from tf_mmdrl.policies.scores import Draws
from tf_mmdrl.train.exact_environment import ExactEnvironment


class Exploration(NamedTuple):
  """How actions that are not random are chosen.

  Attributes:
    act: (observations [B, ...], uniform draws [B, A] or [B, 1], seed [2]) ->
      actions [B].
    draws: which draws it wants.
  """

  act: Callable[..., np.ndarray]
  draws: Draws


class Explorer:
  """Epsilon-greedy actions from a generator of its own.

  Attributes:
    generator: what draws; its state is part of a checkpoint.
  """

  def __init__(
    self,
    act: Union[Callable[[np.ndarray], np.ndarray], Exploration],
    num_actions: int,
    generator: np.random.Generator,
  ):
    """Wraps a policy.

    Args:
      act: observations [B, ...] -> greedy actions [B], or an exploration.
      num_actions: |A|.
      generator: what draws.
    """
    self._act = act
    self._num_actions = num_actions
    self._kept = np.zeros([0, 1], np.float32)
    self.generator = generator

  def __call__(self, time_step: ts.TimeStep, epsilon: float) -> np.ndarray:
    """[B] actions; the number of draws does not depend on epsilon."""
    batch = time_step.step_type.shape
    explore = self.generator.random(batch) < epsilon
    random = self.generator.integers(self._num_actions, size=batch)
    extras: Sequence[np.ndarray] = ()
    act = self._act
    if isinstance(act, Exploration):
      extras = self._extras(time_step, act.draws)
      act = act.act
    if explore.all():
      return random
    return np.where(explore, random, act(time_step.observation, *extras))

  def state(self) -> Dict[str, Any]:
    """The generator and what is kept through an episode, as JSON values."""
    return {
      "generator": self.generator.bit_generator.state,
      "kept": self._kept.tolist(),
    }

  def set_state(self, state: Dict[str, Any]) -> None:
    """Goes on from `state`."""
    self.generator.bit_generator.state = state["generator"]
    self._kept = np.float32(state["kept"]).reshape([-1, 1])

  def _extras(self, time_step, draws: Draws) -> Sequence[np.ndarray]:
    """Uniform draws and a seed for the network's noise."""
    first = time_step.step_type[:, np.newaxis] == ts.StepType.FIRST
    width = self._num_actions if draws is Draws.EACH_STEP else 1
    uniform = self.generator.random([len(first), width], np.float32)
    if draws is Draws.EACH_EPISODE:
      if len(self._kept) != len(first):
        self._kept = uniform
      self._kept = uniform = np.where(first, uniform, self._kept)
    return uniform, self.generator.integers(2**31 - 1, size=2)


class Collector:
  """Steps environments with an explorer; each step goes into replay.

  Attributes:
    step: steps taken, over all environments.
    episodes: games finished.
    scores: of the games finished since they were last taken away.
  """

  def __init__(
    self,
    environment: ExactEnvironment,
    explorer: Explorer,
    buffer: replay.FrameReplayBuffer,
    epsilon: Callable[[int], float],
  ):
    """Plays nothing yet; `epsilon` maps a step to the share of random play."""
    self.environment = environment
    self._explorer = explorer
    self._buffer = buffer
    self._epsilon = epsilon
    self.step = 0
    self.episodes = 0
    self.scores: List[float] = []
    self._running = np.zeros([buffer.batch_size])

  def collect(self, num_steps: int) -> None:
    """Takes `num_steps` of each environment."""
    for _ in range(num_steps):
      if self.environment.is_due:
        self._start_afresh()
      time_step = self.environment.time_step
      actions = self._explorer(time_step, self._epsilon(self.step))
      actions = actions.astype(np.int64, copy=False)
      next_step = self.environment.step(actions)
      self._check(next_step)
      self._store(time_step, actions, next_step)
      self._count(next_step)
      self.step += len(actions)

  def state(self) -> Dict[str, Any]:
    """Counters and the explorer's generator, as JSON values."""
    return {
      "step": self.step,
      "episodes": self.episodes,
      "scores": self.scores,
      "running": self._running.tolist(),
      "explorer": self._explorer.state(),
    }

  def set_state(self, state: Dict[str, Any]) -> None:
    """Goes on from `state`."""
    self.step = state["step"]
    self.episodes = state["episodes"]
    self.scores = list(state["scores"])
    self._running[:] = state["running"]
    self._explorer.set_state(state["explorer"])

  def _start_afresh(self) -> None:
    """Cuts all episodes short, in replay too: LAST, with the discount of 1."""
    time_step = self.environment.time_step
    last = np.full_like(time_step.step_type, ts.StepType.LAST)
    cut = time_step._replace(step_type=last)
    actions = np.zeros([len(last)], np.int64)
    self._store(cut, actions, self.environment.rebuild())
    self._running[:] = 0

  def _store(self, time_step, actions: np.ndarray, next_step) -> None:
    self._buffer.add_batch(
      trajectory.from_transition(
        time_step, policy_step.PolicyStep(actions), next_step
      )
    )

  def _count(self, time_step: ts.TimeStep) -> None:
    self._running += self.environment.raw_reward
    over = time_step.step_type == ts.StepType.LAST
    if over.any():
      self.scores.extend(self._running[over].tolist())
      self.episodes += int(over.sum())
      self._running[over] = 0

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
