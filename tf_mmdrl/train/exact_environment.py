"""An environment that can always be brought back to exactly where it was.

Some environments can save their state. Others (ale-py's emulators) cannot, but
their course is a function of a seed and the actions: for these the actions are
kept, and played again on resume. Fresh starts at fixed steps of the run, cut or
not, bound how many there are to play.
"""

import json
from typing import Any, Dict, List, NamedTuple

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors


class EnvironmentState(NamedTuple):
  """How to get back to a moment.

  Attributes:
    plain: JSON values.
    actions: [T, B] to play again after the start that `plain` names; T is 0 if
      `plain` is the whole state.
  """

  plain: Dict[str, Any]
  actions: np.ndarray


class ExactEnvironment:
  """Steps a batch of environments.

  Attributes:
    time_step: the current one, [B, ...].
  """

  def __init__(
    self, environment: environments.Environment, rebuild_period: int
  ):
    """Starts the environments.

    Args:
      environment: batched, with a seed.
      rebuild_period: vector steps between fresh starts, for environments that
        cannot save their state.
    """
    self._environment = environment
    self._period = rebuild_period
    self._boundary = 0
    self._actions: List[np.ndarray] = []
    self.time_step: ts.TimeStep = environment.reset()
    self._has_state = _has_state(environment)
    if not self._has_state:
      self.time_step = environment.rebuild(0)

  @property
  def raw_reward(self) -> np.ndarray:
    """[B] rewards of the last step before clipping."""
    return self._environment.raw_reward

  @property
  def is_due(self) -> bool:
    """Whether the environments must be started afresh before the next step."""
    return not self._has_state and len(self._actions) >= self._period

  def step(self, actions: np.ndarray) -> ts.TimeStep:
    """Steps all environments, [B] actions."""
    if not self._has_state:
      self._actions.append(actions)
    self.time_step = self._environment.step(actions)
    return self.time_step

  def rebuild(self) -> ts.TimeStep:
    """Starts afresh where `is_due`; the FIRST step of new episodes."""
    self._boundary += 1
    self._actions = []
    self.time_step = self._environment.rebuild(self._boundary)
    return self.time_step

  def state(self) -> EnvironmentState:
    """What `set_state` needs."""
    if self._has_state:
      # As text, because the order of its entries must be kept.
      text = json.dumps(self._environment.get_state())
      return EnvironmentState({"state": text}, np.zeros([0, 0], np.int64))
    spec = self._environment.action_spec()
    shape = [len(self._actions), self._environment.batch_size]
    actions = np.array(self._actions, spec.dtype).reshape(shape)
    return EnvironmentState({"boundary": self._boundary}, actions)

  def set_state(self, state: EnvironmentState) -> None:
    """Goes on exactly as the environment that gave this state would have."""
    if self._has_state:
      self._environment.set_state(json.loads(state.plain["state"]))
      self.time_step = self._environment.current_time_step()
      return
    self._boundary = state.plain["boundary"]
    self.time_step = self._environment.rebuild(self._boundary)
    self._actions = []
    for actions in state.actions:
      self.step(actions)

  def close(self) -> None:
    """Closes the environments."""
    self._environment.close()


def _has_state(environment: environments.Environment) -> bool:
  try:
    environment.get_state()
  except errors.UserError:
    return False
  return True
