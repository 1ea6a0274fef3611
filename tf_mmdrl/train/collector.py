"""Plays a batch of environments into replay."""

from typing import Any, Callable, Dict, List

import numpy as np
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import replay
from tf_mmdrl.core import errors
from tf_mmdrl.policies import ArrayPlayer
from tf_mmdrl.train.exact_environment import ExactEnvironment


class Collector:
  """Steps environments with a player; each step goes into replay.

  Attributes:
    step: steps taken, over all environments.
    episodes: games finished.
    scores: of the games finished since they were last taken away.
  """

  def __init__(
    self,
    environment: ExactEnvironment,
    player: ArrayPlayer,
    buffer: replay.FrameReplayBuffer,
    epsilon: Callable[[int], float],
  ):
    """Plays nothing yet; `epsilon` maps a step to the share of random play."""
    self.environment = environment
    self._player = player
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
      epsilon = self._epsilon(self.step)
      actions = self._player(time_step, epsilon, self.step)
      next_step = self.environment.step(actions)
      self._check(next_step)
      self._store(time_step, actions, next_step)
      self._count(next_step)
      self.step += len(actions)

  def state(self) -> Dict[str, Any]:
    """Counters and what the player keeps, as JSON values."""
    return {
      "step": self.step,
      "episodes": self.episodes,
      "scores": self.scores,
      "running": self._running.tolist(),
      "kept": self._player.kept.tolist(),
    }

  def set_state(self, state: Dict[str, Any]) -> None:
    """Goes on from `state`."""
    self.step = state["step"]
    self.episodes = state["episodes"]
    self.scores = list(state["scores"])
    self._running[:] = state["running"]
    self._player.kept = np.float32(state["kept"]).reshape([-1, 1])

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
