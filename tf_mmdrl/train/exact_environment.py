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
played again from there, in the run before the first checkpoints and now and
then later, and in the process that goes on, where it is the last thousand
steps: that shows what no attribute holds and a short probe does not reach.
Attributes are compared as well, so that a draw shows before it is used.
Generators that others share, as NumPy's own is, are looked at before and after
all that is played, and what modules and classes keep at each checkpoint. Where
anything differs the run does not go on, unless with fresh episodes, if its
user says so.
"""

import contextlib
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
  Tuple,
)

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import snapshot
from tf_mmdrl.environments.snapshot import sharing, sources
from tf_mmdrl.train import courses, proofs

ANEW = "anew"  # in a state: new episodes begin after it
_GENERATORS = "generators"  # in a state: where those of the process are
_PAST = "past"  # in a state: what led to it, to be played again
_OUTSIDE = "outside"  # in a state: digests of what classes and modules keep
_WITHIN = "within"  # in a state: digests of attributes
_ACTIONS_KEPT = 256  # before the state is saved anew, if it can be
_RARELY = 25  # one action in so many is played again in the run
_OFTEN = 4  # the same, if its code asks what no seed decides
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
    """`plain` without what is the process's, and how it came here."""
    others = (_GENERATORS, _PAST, _OUTSIDE)
    return {n: v for n, v in self.plain.items() if n not in others}


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
    self._differed: Optional[str] = None  # how two plays of the same did
    self._past = proofs.Past()
    self._rarely = _OFTEN if sources.found(environment) else _RARELY
    self._since = 0  # actions since the past was last played again
    self._outside: Dict[str, str] = {}
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
      self._past.clear()
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
    if not self._fresh:
      self._past.add(self.time_step)
      self._since += 1
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
    if not self._fresh:
      outside = sharing.texts(self._environment)
      self._depends_on.update(sharing.changed(self._outside, outside))
      plain[_OUTSIDE] = self._lasting(outside)
      plain[_WITHIN] = sharing.attributes(self._environment)
    if self.replayed_because is not None:
      plain["arrived"] = self._arrived()
      plain["seen"] = self._past.seen
      # The run has not drawn from them yet, but its next step may.
      plain[_GENERATORS] = sharing.held(self._undrawn())
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
      raise self._inexact(state.plain["inexact"])
    else:
      self._require_same_outside(state.plain.get(_OUTSIDE, {}))
      if "state" in state.plain:
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
      if "state" in self._start:
        self._past.end(self._start["state"], self._record)
      else:
        self._past.clear()
      self._start = {"boundary": self._boundary, "state": text}
      self._record, self._course = [], 0

  def _try_state(self) -> Optional[str]:
    """Why the state cannot be saved, if it cannot; nothing else changes."""
    try:
      self._first = json.dumps(self._environment.get_state())
      first = sharing.texts(self._environment)
      with self.noticing():
        proofs.probe(self._environment)
      # Much is made when it is first wanted, and does not change any more.
      before = sharing.texts(self._environment)
      new = sharing.changed(first, before)
      self._depends_on.update(sharing.parts_of(self._environment, new))
      found = self._proven_state()
      self._environment.set_state(json.loads(self._first))
    except errors.UserError as error:
      found, before = {"inexact": str(error)}, {}
    self._is_cut, self.problem, self._differed = False, None, None
    if "inexact" in found:
      before = sharing.texts(self._environment)
      with self.noticing():
        proofs.probe(self._environment)
    self._outside = sharing.texts(self._environment)
    self._depends_on.update(sharing.changed(before, self._outside))
    if self._depends_on:
      return self._what_it_depends_on()
    self.time_step = self._environment.current_time_step()
    return found.get("inexact")

  def _what_it_depends_on(self) -> str:
    names = ", ".join(sorted(self._depends_on))
    return f"it depends on {names}, which others share"

  def _shared(self, names: Iterable[str]) -> Dict[str, str]:
    """Digests of what others share, by name."""
    return sharing.named_digests(self._environment, names)

  def _proven_state(self) -> Dict[str, Any]:
    """`state` and digests of a probe of it, or why it is `inexact`."""
    environment, generators = self._environment, self._generators
    held = sharing.held(generators)
    stretches = self._past.until_now(self._start.get("state", ""), self._record)
    try:
      # As text, because the order of its entries must be kept.
      text = json.dumps(environment.get_state())
      self._differed = self._differed or self._plays_otherwise(stretches)
      environment.set_state(json.loads(text))
      probes = []
      for _ in range(2):
        sharing.put(generators, held)
        probes.append((proofs.probe(environment), self._attributes()))
        # From where a new process would begin.
        environment.set_state(json.loads(self._first))
        environment.set_state(json.loads(text))
      # Once is enough: later plays may be alike by chance.
      self._differed = self._differed or _difference(*probes)
      self.problem = self._differed
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
      _GENERATORS: held,
      **({_PAST: proofs.encode(stretches)} if stretches else {}),
      **probes[0][0],
    }

  def _plays_otherwise(self, stretches: List[proofs.Stretch]) -> Optional[str]:
    """Plays what was played again, from where it began; how it differs, if so.

    At first only records twice as long as any that was, later all that is kept
    after so many steps that it takes a small share of them.
    """
    length = len(self._record)
    if "state" not in self._start or not stretches:
      return None
    if length >= max(1, 2 * self._compared):
      self._compared, stretches = length, stretches[-1:]
    elif self._since < self._rarely * proofs.num_actions(stretches):
      return None
    self._since = 0
    before = self._attributes()
    arrived = courses.digest(self.time_step)
    if not proofs.plays_alike(self._environment, stretches):
      return _DIFFERS
    again = courses.digest(self._environment.current_time_step())
    return _difference((arrived, before), (again, self._attributes()))

  def _lasting(self, outside: Dict[str, str]) -> Dict[str, str]:
    return sharing.lasting(self._environment, outside, self._depends_on)

  def _attributes(self) -> Dict[str, str]:
    return sharing.attributes(self._environment)

  def _set_proven_state(self, plain: Dict[str, Any]) -> None:
    if self.replayed_because is not None:
      raise self._inexact(self.replayed_because)
    state, environment = plain["state"], self._environment
    environment.set_state(json.loads(state))
    self._start = {"boundary": plain.get("boundary", 0), "state": state}
    self._record, self._course = [], 0
    self._past.clear()
    self.time_step = environment.current_time_step()
    if "probe" not in plain:  # an earlier version made it
      return
    if courses.digest(self.time_step) != plain["arrived"]:
      raise self._inexact("its observation is another than when it was saved")
    held = plain.get(_GENERATORS, {})  # an earlier version had none
    sharing.put(self._generators, held)
    attributes = self._attributes()
    probe = proofs.probe(environment)
    if any(probe[name] != plain[name] for name in probe.keys() & plain.keys()):
      raise self._inexact(
        "the same actions lead elsewhere than when it was saved"
      )
    self._require_same(plain.get(_WITHIN, {}), attributes)
    self._play_past_again(plain)
    environment.set_state(json.loads(state))
    self.time_step = environment.current_time_step()
    sharing.put(self._generators, held)
    self._outside = sharing.texts(environment)

  def _play_past_again(self, plain: Dict[str, Any]) -> None:
    """Raises if what led to a state leads elsewhere in this process."""
    if _PAST not in plain:
      return
    past = proofs.decode(plain[_PAST])
    alike = proofs.plays_alike(self._environment, past)
    arrived = courses.digest(self._environment.current_time_step())
    if not alike or arrived != plain["arrived"]:
      raise self._inexact(
        f"the last {proofs.num_actions(past):,} actions lead elsewhere in this"
        " process than they did before"
      )
    self._require_same(plain.get(_WITHIN, {}), self._attributes())

  def _require_same_outside(self, before: Dict[str, str]) -> None:
    """Raises if a module or a class does not keep what it kept then."""
    names = proofs.others(before, self._lasting(self._outside))
    if names is not None:
      raise self._inexact(
        f"{names}, which others share, is not what it was in the process that"
        " saved it"
      )

  def _require_same(
    self, before: Dict[str, str], after: Dict[str, str]
  ) -> None:
    """Raises if one of what was looked at then and now is another."""
    names = proofs.others(before, after)
    if names is not None:
      raise self._inexact(
        f"in this process the same actions leave {names} otherwise"
      )

  def _play_again(self, state: EnvironmentState) -> None:
    if self.replayed_because is None:
      self.replayed_because = "it could not when the run began"
    with self.noticing():
      self._rebuild(state.plain["boundary"])
      for actions in state.actions:
        self.step(actions)
    before = state.plain.get("shared", {})
    self._depends_on.update(before)
    seen = state.plain.get("seen", self._past.seen)
    arrived = state.plain.get("arrived", self._arrived())
    if (arrived, seen) != (self._arrived(), self._past.seen):
      why = self.replayed_because
      if self._depends_on:
        why = self._what_it_depends_on()
      raise self._inexact(
        f"the same actions led elsewhere than before; they were kept because"
        f" {why}"
      )
    if self._shared(before) != before:
      raise self._inexact(self._what_it_depends_on())
    self._require_same(state.plain.get(_WITHIN, {}), self._attributes())
    sharing.put(self._undrawn(), state.plain.get(_GENERATORS, {}))
    self._outside = sharing.texts(self._environment)

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
    self._past.clear()
    self.time_step = self._environment.rebuild(boundary)
    return self.time_step

  def _inexact(self, reason: str) -> errors.UserError:
    asked = [f"{s.name} ({s.place})" for s in sources.found(self._environment)]
    code = f" Its code asks {', '.join(asked)}." if asked else ""
    return errors.UserError(
      f"the environment cannot go on exactly where it was: {reason}.{code} Does"
      " it draw without its seed, keep what is not in its attributes, or depend"
      " on a clock, a file or the order of a set? To go on with new episodes,"
      " pass --set environment.resume=fresh"
    )

  def _undrawn(self) -> Dict[str, Any]:
    """The generators that others share and nothing here has drawn from."""
    found = self._generators.items()
    return {n: value for n, value in found if n not in self._depends_on}

  def _arrived(self) -> str:
    return f"{courses.digest(self.time_step)} {self._course:08x}"


def _difference(
  one: Tuple[Any, Dict[str, str]], other: Tuple[Any, Dict[str, str]]
) -> Optional[str]:
  """How two plays of the same differ, by what they led to and left."""
  if one[0] != other[0]:
    return _DIFFERS
  names = proofs.others(one[1], other[1])
  return names and f"{_DIFFERS} in what they left of {names}"
