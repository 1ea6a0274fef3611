"""Plays that show whether an environment goes on exactly.

A probe plays some fixed actions, here and in new episodes. A past is what a
run has played lately, in stretches that each begin at a saved state, so that it
can be played again: in the run before the first checkpoints and now and then
later, and in the process that goes on with it, where it is the last thousand
steps. That shows what no attribute holds and a short probe does not reach.
Attributes are compared as well, so that a draw shows before it is used. A probe
begins new episodes, too, which is where many environments draw.
"""

import hashlib
import json
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import checked, snapshot
from tf_mmdrl.environments.snapshot import sharing, sources
from tf_mmdrl.train import courses

_PROBE = 8  # steps of the episodes under way
_PROBE_NEW = 4  # and of new ones
_KEPT = 1024  # actions of a past, at least, if so many were played
_RARELY = 25  # one action in so many is played again in the run
_OFTEN = 4  # the same, if its code asks what no seed decides
_NAMED = 3  # names in a message
_DIFFERS = "two plays of the same actions from the same state differed"


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


class Replays:
  """Plays again what was played, now and then.

  Attributes:
    past: what was played.
    compared: actions of the longest record that was played again.
    differed: how two plays of the same did, if any two did.
  """

  def __init__(self, environment: environments.Environment):
    """Has not played anything again."""
    self._environment = environment
    self._rarely = _OFTEN if sources.found(environment) else _RARELY
    self._since = 0  # actions since the past was last played again
    self.past = Past()
    self.compared = 0
    self.differed: Optional[str] = None

  def add(self, time_step: ts.TimeStep) -> None:
    """Takes one more step into account."""
    self.past.add(time_step)
    self._since += 1

  def compare(
    self, stretches: List[Stretch], length: int, time_step: ts.TimeStep
  ) -> None:
    """Plays what was played again, from where it began, if it is time to.

    At first only records twice as long as any that was, later all that is kept
    after so many steps that it takes a small share of them.

    Args:
      stretches: what was played, to where the environments are.
      length: actions of the stretch under way.
      time_step: that they led to.
    """
    if self.differed is not None or not stretches:
      return
    if length >= max(1, 2 * self.compared):
      self.compared, stretches = length, stretches[-1:]
    elif self._since < self._rarely * num_actions(stretches):
      return
    self._since = 0
    before = sharing.attributes(self._environment)
    if not plays_alike(self._environment, stretches):
      self.differed = _DIFFERS
      return
    again = self._environment.current_time_step()
    self.differed = difference(
      (courses.digest(time_step), before),
      (courses.digest(again), sharing.attributes(self._environment)),
    )


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


def difference(
  one: Tuple[Any, Dict[str, str]], other: Tuple[Any, Dict[str, str]]
) -> Optional[str]:
  """How two plays of the same differ, by what they led to and left."""
  if one[0] != other[0]:
    return _DIFFERS
  names = others(one[1], other[1])
  return names and f"{_DIFFERS} in what they left of {names}"


def inexact(
  environment: environments.Environment, reason: str
) -> errors.UserError:
  """What is raised where environments cannot go on exactly, for a reason."""
  asked = [f"{s.name} ({s.place})" for s in sources.found(environment)]
  code = f" Its code asks {', '.join(asked)}." if asked else ""
  return errors.UserError(
    f"the environment cannot go on exactly where it was: {reason}.{code} Does"
    " it draw without its seed, keep what is not in its attributes, or depend"
    " on a clock, a file or the order of a set? To go on with new episodes,"
    " pass --set environment.resume=fresh"
  )
