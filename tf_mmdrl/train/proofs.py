"""Plays that show whether an environment goes on exactly.

A probe plays some fixed actions, here and in new episodes. A past is what a
run has played lately, in stretches that each begin at a saved state, so that it
can be played again: later in the run, or in the process that goes on with it.
"""

import hashlib
import json
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

import numpy as np
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.environments import checked, snapshot
from tf_mmdrl.train import courses

_PROBE = 8  # steps of the episodes under way
_PROBE_NEW = 4  # and of new ones
_KEPT = 1024  # actions of a past, at least, if so many were played
_NAMED = 3  # names in a message


class Stretch(NamedTuple):
  """A stretch of the course of environments.

  Attributes:
    start: the state that it begins at, as text.
    record: [B] actions in turn.
    seen: a checksum of all that they led to.
  """

  start: str
  record: List[np.ndarray]
  seen: int


class Past:
  """What was played lately: stretches, each of which begins at a state.

  Attributes:
    seen: a checksum of what the actions since the last state led to.
  """

  def __init__(self) -> None:
    """Nothing was played yet."""
    self.seen = 0
    self._stretches: List[Stretch] = []

  def clear(self) -> None:
    """Forgets all: what comes next does not follow."""
    self.seen = 0
    self._stretches = []

  def add(self, time_step: ts.TimeStep) -> None:
    """Takes one more step into account."""
    self.seen = courses.add_all(self.seen, time_step)

  def end(self, start: str, record: List[np.ndarray]) -> None:
    """Keeps a stretch; the next begins where it ends."""
    if record:
      self._stretches.append(Stretch(start, record, self.seen))
    while num_actions(self._stretches[1:]) >= _KEPT:
      del self._stretches[0]
    self.seen = 0

  def until_now(self, start: str, record: List[np.ndarray]) -> List[Stretch]:
    """All that is kept, with the stretch under way."""
    now = [Stretch(start, record, self.seen)] if record else []
    return [*self._stretches, *now]


def num_actions(stretches: Iterable[Stretch]) -> int:
  """How many actions were played."""
  return sum(len(stretch.record) for stretch in stretches)


def encode(stretches: List[Stretch]) -> Dict[str, Any]:
  """Stretches as JSON values; the state of the first only."""
  records = [np.stack(stretch.record) for stretch in stretches]
  return {
    "state": stretches[0].start,
    "lengths": [len(record) for record in records],
    "seen": [stretch.seen for stretch in stretches],
    "actions": snapshot.capture(np.concatenate(records)),
  }


def decode(plain: Dict[str, Any]) -> List[Stretch]:
  """What `encode` was given, each with the state of the first."""
  actions = list(snapshot.restore(None, plain["actions"]))
  stretches = []
  for length, seen in zip(plain["lengths"], plain["seen"], strict=True):
    stretches.append(Stretch(plain["state"], actions[:length], seen))
    actions = actions[length:]
  return stretches


def plays_alike(
  environment: environments.Environment, stretches: List[Stretch]
) -> bool:
  """Plays stretches again; whether they lead to the same as before."""
  environment.set_state(json.loads(stretches[0].start))
  try:
    for stretch in stretches:
      seen = 0
      for actions in stretch.record:
        seen = courses.add_all(seen, environment.step(actions))
      if seen != stretch.seen:
        return False
  except checked.MisbehavedError:  # the first time it did not
    return False
  return True


def probe(environment: environments.Environment) -> Dict[str, str]:
  """Digests of what some fixed actions lead to; they are played.

  Returns:
    `probe`, in the episodes under way; `new_episodes`, in new ones.
  """
  random = np.random.RandomState(0)
  first = _digest_of(environment, _PROBE, random)
  try:
    begun = courses.digest(environment.reset())
  except checked.MisbehavedError as error:
    begun = str(error)
  new = _digest_of(environment, _PROBE_NEW, random)
  return {"probe": first, "new_episodes": f"{begun} {new}"}


def _digest_of(
  environment: environments.Environment,
  num_steps: int,
  random: np.random.RandomState,
) -> str:
  """Plays some steps of random actions; a digest of what they led to."""
  spec = environment.action_spec()
  seen = hashlib.sha256()
  try:
    for _ in range(num_steps):
      actions = array_spec.sample_spec_nest(
        spec, random, (environment.batch_size,)
      )
      seen.update(courses.digest(environment.step(actions)).encode())
      reward = environment.raw_reward
      seen.update(np.ascontiguousarray(reward).tobytes())
  except checked.MisbehavedError as error:  # it would in the run, too
    seen.update(str(error).encode())
  return seen.hexdigest()


def others(before: Dict[str, str], after: Dict[str, str]) -> Optional[str]:
  """The names of what is in both and differs, in words; None if nothing."""
  names = [n for n in before if after.get(n, before[n]) != before[n]]
  more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
  return f"{', '.join(names[:_NAMED])}{more}" if names else None
