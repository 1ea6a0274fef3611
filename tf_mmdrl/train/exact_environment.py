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
to. Both are compared after a restore. What led to a state is played again, too
(`proofs`), and what the environments share with others is looked at
(`outside`). Where anything differs the run does not go on, unless with fresh
episodes, if its user says so.
"""

import contextlib
import json
from typing import Any, ContextManager, Dict, List, Optional

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import snapshot
from tf_mmdrl.environments.snapshot import sharing
from tf_mmdrl.train import courses, proofs
from tf_mmdrl.train import environment_states as states
from tf_mmdrl.train.environment_states import EnvironmentState, Moment
from tf_mmdrl.train.outside import Outside

_ACTIONS_KEPT = 256  # before the state is saved anew, if it can be


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
    self._is_cut = False
    self._first = ""  # the state of a new process, as text
    self._unplayed: Optional[EnvironmentState] = None
    self._outside = Outside(environment, looks=not self._fresh)
    self._replays = proofs.Replays(environment)
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
    return self._unplayed is not None and states.ANEW in self._unplayed.plain

  @property
  def moment(self) -> Moment:
    """Where the environments are; `go_to` brings any others there."""
    if "state" in self._start and len(self._record) >= _ACTIONS_KEPT:
      self._start_here()
    return Moment(self._start, self._record, len(self._record), self._seen())

  def go_to(self, moment: Moment) -> None:
    """Goes on exactly as the environments that gave this moment would have.

    Raises:
      UserError: if the same actions lead elsewhere here.
    """
    start, record, count, seen = moment
    here = record is self._record and start is self._start
    if here and count == len(record):
      return
    if "state" in start:
      self._environment.set_state(json.loads(start["state"]))
      self.time_step = self._environment.current_time_step()
      self._start, self._record, self._course = start, [], 0
      self._replays.past.clear()
    else:
      self._rebuild(start["boundary"])
      self._start = start
    for actions in record[:count]:
      self.step(actions)
    if self._seen() != seen:
      raise self._inexact(
        self._outside.why
        or f"its last {count:,} actions led elsewhere in the process that took"
        " over"
      )

  def noticing(self) -> ContextManager[None]:
    """While entered, who draws from generators that others share is noticed.

    For all that a run plays; to look costs as much as a few steps.
    """
    return self._outside.noticing()

  def step(self, actions: np.ndarray) -> ts.TimeStep:
    """Steps all environments, [B] actions."""
    self._unplayed = None
    if not self._fresh:
      self._record.append(actions)
    self.time_step = self._environment.step(actions)
    self.raw_reward = self._environment.raw_reward
    self._course = courses.add(self._course, self.time_step)
    if not self._fresh:
      self._replays.add(self.time_step)
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
      plain[states.OUTSIDE] = self._outside.notice()
      plain[states.WITHIN] = sharing.attributes(self._environment)
    if self.replayed_because is not None:
      plain["arrived"] = self._arrived()
      plain["seen"] = self._replays.past.seen
      # The run has not drawn from them yet, but its next step may.
      plain[states.GENERATORS] = sharing.held(self._outside.undrawn)
      if self._outside.depends_on:
        plain["shared"] = self._outside.named(self._outside.depends_on)
    elif self._fresh:
      plain["inexact"] = "it was saved with environment.resume=fresh"
    elif self._outside.why is not None:
      self.problem = plain["inexact"] = self._outside.why
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
    if self._fresh or states.ANEW in state.plain:
      self._start_over(state)
    elif "inexact" in state.plain:
      raise self._inexact(state.plain["inexact"])
    else:
      self._require_same_outside(state.plain.get(states.OUTSIDE, {}))
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
        self._replays.past.end(self._start["state"], self._record)
      else:
        self._replays.past.clear()
      self._start = {"boundary": self._boundary, "state": text}
      self._record, self._course = [], 0

  def _try_state(self) -> Optional[str]:
    """Why the state cannot be saved, if it cannot; nothing else changes."""
    outside = self._outside
    try:
      self._first = json.dumps(self._environment.get_state())
      before = outside.probe()
      found = self._proven_state()
      self._environment.set_state(json.loads(self._first))
    except errors.UserError as error:
      found, before = {"inexact": str(error)}, {}
    self._is_cut, self.problem, self._replays.differed = False, None, None
    if "inexact" in found:
      before = sharing.texts(self._environment)
      outside.probe_again()
    outside.notice_since(before)
    if outside.why is not None:
      return outside.why
    self.time_step = self._environment.current_time_step()
    return found.get("inexact")

  def _proven_state(self) -> Dict[str, Any]:
    """`state` and digests of a probe of it, or why it is `inexact`."""
    environment, generators = self._environment, self._outside.generators
    held, replays = sharing.held(generators), self._replays
    start = self._start.get("state", "")
    stretches = replays.past.until_now(start, self._record)
    try:
      # As text, because the order of its entries must be kept.
      text = json.dumps(environment.get_state())
      if "state" in self._start:
        replays.compare(stretches, len(self._record), self.time_step)
      environment.set_state(json.loads(text))
      probes = []
      for _ in range(2):
        sharing.put(generators, held)
        probe = proofs.probe(environment)
        probes.append((probe, sharing.attributes(environment)))
        # From where a new process would begin.
        environment.set_state(json.loads(self._first))
        environment.set_state(json.loads(text))
      # Once is enough: later plays may be alike by chance.
      replays.differed = replays.differed or proofs.difference(*probes)
      self.problem = replays.differed
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
      states.GENERATORS: held,
      **({states.PAST: proofs.encode(stretches)} if stretches else {}),
      **probes[0][0],
    }

  def _set_proven_state(self, plain: Dict[str, Any]) -> None:
    if self.replayed_because is not None:
      raise self._inexact(self.replayed_because)
    state, environment = plain["state"], self._environment
    environment.set_state(json.loads(state))
    self._start = {"boundary": plain.get("boundary", 0), "state": state}
    self._record, self._course = [], 0
    self._replays.past.clear()
    self.time_step = environment.current_time_step()
    if "probe" not in plain:  # an earlier version made it
      return
    if courses.digest(self.time_step) != plain["arrived"]:
      raise self._inexact("its observation is another than when it was saved")
    held = plain.get(states.GENERATORS, {})  # an earlier version had none
    sharing.put(self._outside.generators, held)
    attributes = sharing.attributes(environment)
    probe = proofs.probe(environment)
    if any(probe[name] != plain[name] for name in probe.keys() & plain.keys()):
      raise self._inexact(
        "the same actions lead elsewhere than when it was saved"
      )
    self._require_same(plain, attributes)
    self._play_past_again(plain)
    environment.set_state(json.loads(state))
    self.time_step = environment.current_time_step()
    sharing.put(self._outside.generators, held)
    self._outside.look()

  def _play_past_again(self, plain: Dict[str, Any]) -> None:
    """Raises if what led to a state leads elsewhere in this process."""
    if states.PAST not in plain:
      return
    past = proofs.decode(plain[states.PAST])
    alike = proofs.plays_alike(self._environment, past)
    arrived = courses.digest(self._environment.current_time_step())
    if not alike or arrived != plain["arrived"]:
      raise self._inexact(
        f"the last {proofs.num_actions(past):,} actions lead elsewhere in this"
        " process than they did before"
      )
    self._require_same(plain, sharing.attributes(self._environment))

  def _require_same_outside(self, before: Dict[str, str]) -> None:
    """Raises if a module or a class does not keep what it kept then."""
    names = self._outside.others(before)
    if names is not None:
      raise self._inexact(
        f"{names}, which others share, is not what it was in the process that"
        " saved it"
      )

  def _require_same(
    self, plain: Dict[str, Any], attributes: Dict[str, str]
  ) -> None:
    """Raises if an attribute is another than when `plain` was saved."""
    names = proofs.others(plain.get(states.WITHIN, {}), attributes)
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
    self._outside.depends_on.update(before)
    seen = state.plain.get("seen", self._replays.past.seen)
    arrived = state.plain.get("arrived", self._arrived())
    if (arrived, seen) != (self._arrived(), self._replays.past.seen):
      why = self._outside.why or self.replayed_because
      raise self._inexact(
        f"the same actions led elsewhere than before; they were kept because"
        f" {why}"
      )
    if self._outside.why is not None and self._outside.named(before) != before:
      raise self._inexact(self._outside.why)
    self._require_same(state.plain, sharing.attributes(self._environment))
    sharing.put(self._outside.undrawn, state.plain.get(states.GENERATORS, {}))
    self._outside.look()

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
    self._replays.past.clear()
    self.time_step = self._environment.rebuild(boundary)
    return self.time_step

  def _inexact(self, reason: str) -> errors.UserError:
    return proofs.inexact(self._environment, reason)

  def _seen(self) -> int:
    if self._fresh:
      return 0  # nobody goes there
    if not self._record:
      return courses.add_all(0, self.time_step)
    return self._replays.past.seen

  def _arrived(self) -> str:
    return f"{courses.digest(self.time_step)} {self._course:08x}"
