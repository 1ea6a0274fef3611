"""An environment that can always be brought back to exactly where it was.

Some environments can save their state. Others (ale-py's emulators) cannot, but
their course is a function of a seed and the actions: for these the actions are
kept, and played again on resume. Fresh starts at fixed steps of the run, cut or
not, bound how many there are to play.

A moment is a start and the actions since then, for all of them: to name it
costs nothing, while saving the state of MinAtar's games takes as long as forty
steps of them.
"""

import json
from typing import Any, Dict, List, NamedTuple

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors

_ACTIONS_KEPT = 256  # before the state is saved anew, if it can be


class EnvironmentState(NamedTuple):
  """How to get back to a moment.

  Attributes:
    plain: JSON values.
    actions: [T, B] to play again after the start that `plain` names; T is 0 if
      `plain` is the whole state.
  """

  plain: Dict[str, Any]
  actions: np.ndarray


class Moment(NamedTuple):
  """A moment in the course of environments.

  Attributes:
    start: JSON values, which name what the actions begin at.
    record: [B] actions in turn. It may have grown since.
    num_actions: how many of them led here.
  """

  start: Dict[str, Any]
  record: List[np.ndarray]
  num_actions: int


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
    self._record: List[np.ndarray] = []
    self.time_step: ts.TimeStep = environment.reset()
    self._has_state = _has_state(environment)
    if self._has_state:
      self._start = self._saved()
    else:
      self._start = {"boundary": 0}
      self.time_step = environment.rebuild(0)

  @property
  def raw_reward(self) -> np.ndarray:
    """[B] rewards of the last step before clipping."""
    return self._environment.raw_reward

  @property
  def is_due(self) -> bool:
    """Whether the environments must be started afresh before the next step."""
    return not self._has_state and len(self._record) >= self._period

  @property
  def moment(self) -> Moment:
    """Where the environments are; `go_to` brings any others there."""
    if self._has_state and len(self._record) >= _ACTIONS_KEPT:
      self._start, self._record = self._saved(), []
    return Moment(self._start, self._record, len(self._record))

  def go_to(self, moment: Moment) -> None:
    """Goes on exactly as the environments that gave this moment would have."""
    start, record, count = moment
    here = record is self._record and start is self._start
    if here and count == len(record):
      return
    if self._has_state:
      self._environment.set_state(json.loads(start["state"]))
      self.time_step = self._environment.current_time_step()
    else:
      self.time_step = self._environment.rebuild(start["boundary"])
    self._start, self._record = start, []
    for actions in record[:count]:
      self.step(actions)

  def step(self, actions: np.ndarray) -> ts.TimeStep:
    """Steps all environments, [B] actions."""
    self._record.append(actions)
    self.time_step = self._environment.step(actions)
    return self.time_step

  def rebuild(self) -> ts.TimeStep:
    """Starts afresh where `is_due`; the FIRST step of new episodes."""
    boundary = self._start["boundary"] + 1
    self._start, self._record = {"boundary": boundary}, []
    self.time_step = self._environment.rebuild(boundary)
    return self.time_step

  def state(self) -> EnvironmentState:
    """What `set_state` needs, with as few actions as there can be."""
    if self._has_state:
      return EnvironmentState(self._saved(), np.zeros([0, 0], np.int64))
    spec = self._environment.action_spec()
    shape = [len(self._record), self._environment.batch_size]
    actions = np.array(self._record, spec.dtype).reshape(shape)
    return EnvironmentState(self._start, actions)

  def set_state(self, state: EnvironmentState) -> None:
    """Goes on exactly as the environment that gave this state would have."""
    actions = list(state.actions)
    self.go_to(Moment(state.plain, actions, len(actions)))

  def close(self) -> None:
    """Closes the environments."""
    self._environment.close()

  def _saved(self) -> Dict[str, Any]:
    # As text, because the order of its entries must be kept.
    return {"state": json.dumps(self._environment.get_state())}


def _has_state(environment: environments.Environment) -> bool:
  try:
    environment.get_state()
  except errors.UserError:
    return False
  return True
