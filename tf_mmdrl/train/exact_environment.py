"""An environment that can be brought back to exactly where it was, or says no.

Some environments can save their state. Others (ale-py's emulators) cannot, but
their course is a function of a seed and the actions: for these the actions are
kept, and played again on resume. Fresh starts at fixed steps of the run, cut or
not, bound how many there are to play.

A moment is a start and the actions since then, for all of them: to name it
costs nothing, while saving the state of MinAtar's games takes as long as forty
steps of them.

Neither is taken on trust. A saved state goes with a digest of a short probe,
which was played from it and undone; actions go with a digest of what they led
to. Both are compared after a restore. A probe begins new episodes, too, which
is where many environments draw. What the run has played since a saved state is
played again from there before the first checkpoints: that shows what no
attribute holds and a short probe does not reach. And generators that others
share, as NumPy's own is, are looked at before and after all that is played.
Where anything differs the run does not go on, unless with fresh episodes, if
its user says so.
"""

import contextlib
import hashlib
import json
from typing import (
  Any,
  Dict,
  Iterable,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Set,
)

import numpy as np
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import checked, snapshot
from tf_mmdrl.environments.snapshot import sharing
from tf_mmdrl.train import courses

ANEW = "anew"  # in a state: new episodes begin after it
_GENERATORS = "generators"  # in a state: where those of the process are
_ACTIONS_KEPT = 256  # before the state is saved anew, if it can be
_PROBE = 8  # steps of the episodes under way
_PROBE_NEW = 4  # and of new ones
_DIFFERS = "two plays of the same actions from the same state differed"


class EnvironmentState(NamedTuple):
  """How to get back to a moment.

  Attributes:
    plain: JSON values.
    actions: [T, B] to play again after the start that `plain` names; T is 0 if
      `plain` is the whole state.
  """

  plain: Dict[str, Any]
  actions: np.ndarray

  @property
  def of_environment(self) -> Dict[str, Any]:
    """`plain` without what is the process's: its generators, undrawn from."""
    return {n: v for n, v in self.plain.items() if n != _GENERATORS}


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
    raw_reward: [B] rewards of the last step before clipping, or [B, D].
    replayed_because: why the state cannot be saved; None if it can.
    problem: why a run could not go on exactly from the newest state, if so.
  """

  def __init__(
    self,
    environment: environments.Environment,
    rebuild_period: int,
    *,
    resume: str = "exact",
  ):
    """Starts the environments.

    Args:
      environment: batched, with a seed.
      rebuild_period: vector steps between fresh starts, for environments that
        cannot save their state.
      resume: "exact", or "fresh" for new episodes wherever a run goes on.
    """
    self._environment = environment
    self._period = rebuild_period
    self._fresh = resume == "fresh"
    self._start: Dict[str, Any] = {"boundary": 0}
    self._record: List[np.ndarray] = []
    self._course = 0  # a checksum of what the record led to
    self._compared = 0  # actions of the longest record that was played again
    self._is_cut = False
    self._first = ""  # the state of a new process, as text
    self._unplayed: Optional[EnvironmentState] = None
    self._generators = {} if self._fresh else sharing.generators(environment)
    self._depends_on: Set[str] = set()  # the names of what others share, too
    self._differed = False  # whether two plays of the same actions ever did
    self.problem: Optional[str] = None
    self.time_step: ts.TimeStep = environment.reset()
    self.raw_reward = environment.raw_reward
    self.replayed_because = None if self._fresh else self._try_state()
    if self.replayed_because is not None:
      self.time_step = environment.rebuild(0)
    elif not self._fresh:
      self._start["state"] = self._first

  @property
  def is_due(self) -> bool:
    """Whether the environments must be started afresh before the next step."""
    is_long = len(self._record) >= self._period
    return self._is_cut or self.replayed_because is not None and is_long

  @property
  def begins_anew(self) -> bool:
    """Whether new episodes begin at the next step, after a state from afar."""
    return self._unplayed is not None and ANEW in self._unplayed.plain

  @property
  def moment(self) -> Moment:
    """Where the environments are; `go_to` brings any others there."""
    if "state" in self._start and len(self._record) >= _ACTIONS_KEPT:
      self._start_here()
    return Moment(self._start, self._record, len(self._record))

  def go_to(self, moment: Moment) -> None:
    """Goes on exactly as the environments that gave this moment would have."""
    start, record, count = moment
    here = record is self._record and start is self._start
    if here and count == len(record):
      return
    if "state" in start:
      self._environment.set_state(json.loads(start["state"]))
      self.time_step = self._environment.current_time_step()
      self._start, self._record, self._course = start, [], 0
    else:
      self._rebuild(start["boundary"])
      self._start = start
    for actions in record[:count]:
      self.step(actions)

  @contextlib.contextmanager
  def noticing(self) -> Iterator[None]:
    """While entered, who draws from generators that others share is noticed.

    For all that a run plays; to look costs as much as a few steps.
    """
    before = sharing.states(self._generators)
    try:
      yield
    finally:
      after = sharing.states(self._generators)
      self._depends_on.update(n for n in after if after[n] != before[n])

  def step(self, actions: np.ndarray) -> ts.TimeStep:
    """Steps all environments, [B] actions."""
    self._unplayed = None
    if not self._fresh:
      self._record.append(actions)
    self.time_step = self._environment.step(actions)
    self.raw_reward = self._environment.raw_reward
    self._course = courses.add(self._course, self.time_step)
    return self.time_step

  def rebuild(self) -> ts.TimeStep:
    """Starts afresh where `is_due`; the FIRST step of new episodes."""
    self._unplayed = None
    time_step = self._rebuild(self._boundary + 1)
    if self.replayed_because is None and not self._fresh:
      self._start_here()
    return time_step

  def state(self) -> EnvironmentState:
    """What `set_state` needs, with as few actions as there can be."""
    if self._unplayed is not None:
      return self._unplayed
    plain = {
      "boundary": self._boundary,
      "time_step": snapshot.capture(tuple(self.time_step)),
    }
    record = self._record if self.replayed_because is not None else []
    spec = self._environment.action_spec()
    shape = [len(record), self._environment.batch_size]
    actions = np.array(record, spec.dtype).reshape(shape)
    if self.replayed_because is not None:
      plain["arrived"] = self._arrived()
      if self._depends_on:
        plain["shared"] = self._shared(self._depends_on)
    elif self._fresh:
      plain["inexact"] = "it was saved with environment.resume=fresh"
    elif self._depends_on:
      self.problem = plain["inexact"] = self._what_it_depends_on()
    else:
      plain.update(self._proven_state())
    return EnvironmentState(plain, actions)

  def set_state(self, state: EnvironmentState) -> None:
    """Goes on exactly as the environment that gave this state would have.

    Args:
      state: the state of an environment that was made in the same way.

    Raises:
      UserError: if that cannot be; not if new episodes were asked for.
    """
    if self._fresh or ANEW in state.plain:
      self._start_over(state)
    elif "inexact" in state.plain:
      raise _inexact(state.plain["inexact"])
    elif "state" in state.plain:
      self._set_proven_state(state.plain)
    else:
      self._play_again(state)
    self._unplayed = state

  def close(self) -> None:
    """Closes the environments."""
    self._environment.close()

  @property
  def _boundary(self) -> int:
    return self._start.get("boundary", 0)  # an earlier version had none

  def _start_here(self) -> None:
    """Begins a new record if the state can be saved; else the old one grows."""
    with contextlib.suppress(errors.UserError):
      text = json.dumps(self._environment.get_state())
      self._start = {"boundary": self._boundary, "state": text}
      self._record, self._course = [], 0

  def _try_state(self) -> Optional[str]:
    """Why the state cannot be saved, if it cannot; nothing else changes."""
    try:
      self._first = json.dumps(self._environment.get_state())
      with self.noticing():
        self._probe()
      found = self._proven_state()
      self._environment.set_state(json.loads(self._first))
    except errors.UserError as error:
      found = {"inexact": str(error)}
    self._is_cut, self.problem = False, None
    if "inexact" in found:
      self._look_outside()
    if self._depends_on:
      return self._what_it_depends_on()
    self.time_step = self._environment.current_time_step()
    return found.get("inexact")

  def _look_outside(self) -> None:
    """Finds out what the environment changes that is none of its attributes."""
    found = sharing.changes(self._environment, self._probe)
    self._depends_on.update(found)

  def _what_it_depends_on(self) -> str:
    names = ", ".join(sorted(self._depends_on))
    return f"it depends on {names}, which others share"

  def _shared(self, names: Iterable[str]) -> Dict[str, str]:
    """Digests of what others share, by name."""
    return sharing.digests(self._environment, names)

  def _proven_state(self) -> Dict[str, Any]:
    """`state` and digests of a probe of it, or why it is `inexact`."""
    environment, generators = self._environment, self._generators
    held = sharing.held(generators)
    try:
      # As text, because the order of its entries must be kept.
      text = json.dumps(environment.get_state())
      probes: List[Dict[str, str]] = []
      if not self._leads_here_again():
        probes.append({})  # another course than any probe's
      environment.set_state(json.loads(text))
      for _ in range(2):
        sharing.put(generators, held)
        probes.append(self._probe())
        # From where a new process would begin.
        environment.set_state(json.loads(self._first))
        environment.set_state(json.loads(text))
      self._differed |= any(probe != probes[0] for probe in probes)
      # Once is enough: later plays may be alike by chance.
      self.problem = _DIFFERS if self._differed else None
    except errors.UserError as error:
      self.problem = str(error)
    finally:
      sharing.put(generators, held)
    if self.problem is not None:
      self._is_cut = True  # what the probe changed could not be undone
      return {"inexact": self.problem}
    return {
      "state": text,
      "arrived": courses.digest(self.time_step),
      # The run has not drawn from them yet, but its next step may.
      _GENERATORS: held,
      **probes[0],
    }

  def _leads_here_again(self) -> bool:
    """Plays the record again, from its start; whether that leads here.

    Only records twice as long as any that was, so that it costs no more than
    twice the longest, however many checkpoints there are.
    """
    length = len(self._record)
    if "state" not in self._start or length < max(1, 2 * self._compared):
      return True
    self._compared = length
    self._environment.set_state(json.loads(self._start["state"]))
    course = 0
    try:
      for actions in self._record:
        time_step = self._environment.step(actions)
        course = courses.add(course, time_step)
    except checked.MisbehavedError:  # the first time it did not
      return False
    same = courses.digest(time_step) == courses.digest(self.time_step)
    return same and course == self._course

  def _probe(self) -> Dict[str, str]:
    """Digests of what some fixed actions lead to; they are played.

    Returns:
      `probe`, in the episodes under way; `new_episodes`, in new ones.
    """
    environment, random = self._environment, np.random.RandomState(0)
    first = self._digest_of(_PROBE, random)
    try:
      begun = courses.digest(environment.reset())
    except checked.MisbehavedError as error:
      begun = str(error)
    new = self._digest_of(_PROBE_NEW, random)
    return {"probe": first, "new_episodes": f"{begun} {new}"}

  def _digest_of(self, num_steps: int, random: np.random.RandomState) -> str:
    """Plays some steps of random actions; a digest of what they led to."""
    environment, spec = self._environment, self._environment.action_spec()
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

  def _set_proven_state(self, plain: Dict[str, Any]) -> None:
    if self.replayed_because is not None:
      raise _inexact(self.replayed_because)
    state, environment = plain["state"], self._environment
    environment.set_state(json.loads(state))
    self._start = {"boundary": plain.get("boundary", 0), "state": state}
    self._record, self._course = [], 0
    self.time_step = environment.current_time_step()
    if "probe" not in plain:  # an earlier version made it
      return
    if courses.digest(self.time_step) != plain["arrived"]:
      raise _inexact("its observation is another than when it was saved")
    held = plain.get(_GENERATORS, {})  # an earlier version had none
    sharing.put(self._generators, held)
    probe = self._probe()
    if any(probe[name] != plain[name] for name in probe.keys() & plain.keys()):
      raise _inexact("the same actions lead elsewhere than when it was saved")
    environment.set_state(json.loads(state))
    self.time_step = environment.current_time_step()
    sharing.put(self._generators, held)

  def _play_again(self, state: EnvironmentState) -> None:
    if self.replayed_because is None:
      self.replayed_because = "it could not when the run began"
    with self.noticing():
      self._rebuild(state.plain["boundary"])
      for actions in state.actions:
        self.step(actions)
    before = state.plain.get("shared", {})
    self._depends_on.update(before)
    if state.plain.get("arrived", self._arrived()) != self._arrived():
      why = self.replayed_because
      if self._depends_on:
        why = self._what_it_depends_on()
      raise _inexact(
        f"the same actions led elsewhere than before; they were kept because"
        f" {why}"
      )
    if self._shared(before) != before:
      raise _inexact(self._what_it_depends_on())

  def _start_over(self, state: EnvironmentState) -> None:
    """Begins new episodes at the next step, after the one that was saved."""
    plain = state.plain
    self._start = {"boundary": plain.get("boundary", 0)}
    self._record, self._is_cut = [], True
    if "time_step" in plain:
      saved = plain["time_step"]
    elif "state" in plain:  # an earlier version made it
      saved = json.loads(plain["state"])["time_step"]
    else:
      self._play_again(state)
      self.replayed_because, self._is_cut = None, True
      return
    self.time_step = ts.TimeStep(*snapshot.restore(None, saved))

  def _rebuild(self, boundary: int) -> ts.TimeStep:
    self._start, self._record = {"boundary": boundary}, []
    self._course, self._is_cut = 0, False
    self.time_step = self._environment.rebuild(boundary)
    return self.time_step

  def _arrived(self) -> str:
    return f"{courses.digest(self.time_step)} {self._course:08x}"


def _inexact(reason: str) -> errors.UserError:
  return errors.UserError(
    f"the environment cannot go on exactly where it was: {reason}. Does it draw"
    " without its seed, or keep what is not in its attributes? To go on with"
    " new episodes, pass --set environment.resume=fresh"
  )
