"""The actor of a slot that is elsewhere, as the learner sees it.

The learner itself calls again who was lost, so that it can count: an actor that
dies is replaced, and the call repeated. After five that died over one call, and
wherever nobody answers for too long, the learner plays the chunk itself:
playing is a function of its arguments, so the run goes on by the same bits.
Every wait has an end, and says whom it waits for.
"""

import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np
import ray
import tensorflow as tf
from ray import exceptions

from tf_mmdrl.cluster import packing
from tf_mmdrl.cluster.office import Office
from tf_mmdrl.cluster.slot_player import (
  Course,
  Introduction,
  Move,
  Place,
  SlotPlayer,
)
from tf_mmdrl.cluster.waiting import Clock, LateError
from tf_mmdrl.core import notices
from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.environment_states import EnvironmentState
from tf_mmdrl.train.slot_actors import SavedActor

_REBASE = 512  # actions that travel with each call, at most


class SlotState(NamedTuple):
  """Where a slot is, as the learner keeps it.

  Attributes:
    place: what travels.
    course: the way to the place's base.
  """

  place: Place
  course: Course

  @property
  def step(self) -> int:
    """Steps that it has taken, over its environments."""
    return self.place.step


class RaySlot:
  """The actor of a slot, elsewhere; see `train.slot_actors.SlotActor`."""

  def __init__(self, slot: int, office: Office):
    """Lets an actor start, and does not wait for it."""
    self.slot = slot
    self.problem: Optional[str] = None
    self._office = office
    self._handle: Any = None
    self._who: Optional[Introduction] = None
    self._here: Optional[SlotPlayer] = None
    self._introduction: Any = None
    self._hire()

  @property
  def replayed_because(self) -> Optional[str]:
    """Why the environments' state cannot be saved; None if it can."""
    # Not kept: in free order the learner answers for an actor that is late.
    who: Introduction = self._who or self._call("introduce")
    return who.replayed_because

  @property
  def name(self) -> str:
    """Who plays the slot, for messages."""
    if self._who is None:
      return f"slot {self.slot}, whose actor has not started yet"
    return f"slot {self.slot} (process {self._who.process} on {self._who.host})"

  @property
  def process(self) -> Optional[int]:
    """Its number on its machine, once it is there."""
    return self._who.process if self._who is not None else None

  def begin(self) -> SlotState:
    """The state before the first step."""
    return self._moved(None, self._call("begin"))

  def play(
    self, state: SlotState, weights: Weights, num_steps: int
  ) -> Tuple[Chunk, SlotState]:
    """Takes `num_steps` of each environment, from `state` on."""
    sent = self._office.put(weights)
    packed, move = self._call("play", state.place, sent, num_steps)
    return packing.unpack(packed), self._moved(state, move)

  def submit(
    self, state: SlotState, weights: Weights, num_steps: int
  ) -> Optional[Any]:
    """As `play`, and does not wait: a reference, or None if nobody is there.

    Whoever left is replaced as soon as a machine has room.
    """
    if self._handle is None:
      self._hire()
    if self._who is None:
      if not ray.wait([self._introduction], timeout=0)[0]:
        return None
      try:
        self._who = ray.get(self._introduction)
      except exceptions.RayTaskError as error:
        raise getattr(error, "cause", None) or error from None
      except exceptions.RayError as error:
        self.lose(_short(error))
        return None
      self._greet(self._who)
    sent = self._office.put(weights)
    handle: Any = self._handle
    return handle.play.remote(state.place, sent, num_steps)

  def receive(
    self, state: SlotState, reference: Any
  ) -> Optional[Tuple[Chunk, SlotState]]:
    """What `submit` led to, once it is there; None if the actor is lost.

    Args:
      state: that it was submitted with.
      reference: of `submit`.
    """
    try:
      packed, move = ray.get(reference)
    except exceptions.RayTaskError as error:
      raise getattr(error, "cause", None) or error from None
    except exceptions.RayError as error:
      self.lose(_short(error))
      return None
    return packing.unpack(packed), self._moved(state, move)

  def save(self, state: SlotState) -> SavedActor:
    """`state` as JSON values, and that of the environments."""
    if self._office.is_free and self._who is None:  # nobody is there
      saved = self._play_here("save", state.place)
    else:
      saved = self._call("save", state.place)
    plain, environment, self.problem = saved
    return plain, _own(environment)

  def restored(
    self, plain: Dict[str, Any], environment: EnvironmentState
  ) -> SlotState:
    """The state that `save` gave these of."""
    return self._moved(None, self._call("restored", plain, environment))

  def close(self) -> None:
    """Ends the actor."""
    self._dismiss()
    if self._here is not None:
      self._here.close()

  def _moved(self, before: Optional[SlotState], move: Move) -> SlotState:
    step, running, kept = move.step, np.array(move.running), np.array(move.kept)
    course, since = move.course, np.array(move.actions)
    if course is None and before is not None:
      since = np.concatenate([before.place.since, since])
      course, base = before.course, before.place.base
      if len(since) > _REBASE:
        actions = np.concatenate([course.actions, since])
        course, base = course._replace(actions=actions), []
    else:
      assert course is not None
      course, base = _own_course(course), []
    if not base:
      base, since = [ray.put(course)], since[:0]
    place = Place(move.token, step, running, kept, base, since, move.seen)
    return SlotState(place, course)

  def _hire(self) -> None:
    self._who = None
    self._handle = self._office.hire(self.slot)
    self._introduction = self._handle.introduce.remote()

  def _dismiss(self) -> None:
    if self._handle is not None:
      ray.kill(self._handle)
    self._handle = self._who = None

  def _call(self, method: str, *arguments: Any) -> Any:
    """Calls until an answer comes, from whomever."""
    office, clock = (
      self._office,
      Clock(self._office.call_patience, self._office.stop),
    )
    lost = 0
    while lost < office.patience.attempts:
      try:
        if self._handle is None:
          self._hire()
        if self._who is None:
          self._who = self._answer(self._introduction, clock)
          self._greet(self._who)
        return self._answer(
          getattr(self._handle, method).remote(*arguments), clock
        )
      except exceptions.RayTaskError as error:
        raise getattr(error, "cause", None) or error from None
      except exceptions.ActorUnavailableError:
        # It may come back, and would not have to start then.
        if clock.is_unreachable():
          lost += 1
          self.lose("cannot be reached")
        else:
          time.sleep(min(1.0, office.patience.reconnect / 10))
      except exceptions.RayError as error:
        lost += 1
        self.lose(_short(error))
      except LateError:
        if not office.is_free:
          clock.give_up(self.name)
        return self._play_here(method, *arguments)
    notices.warn(
      f"{lost} actors of slot {self.slot} were lost over one chunk; the learner"
      " plays it itself"
    )
    return self._play_here(method, *arguments)

  def _answer(self, reference: Any, clock: Clock) -> Any:
    while True:
      ready, _ = ray.wait([reference], timeout=clock.next())
      if ready:
        return ray.get(reference)
      clock.look(self.name)

  def _greet(self, who: Introduction) -> None:
    self._office.check(self.slot, who)
    if self._office.is_free:
      notices.note(f"{self.name} joins")

  def lose(self, why: str) -> None:
    """Says that the actor has gone; another one will take over."""
    notices.note(f"{self.name} was lost: {why}; another takes over")
    self._dismiss()

  def _play_here(self, method: str, *arguments: Any) -> Any:
    if self._here is None:
      self._here = SlotPlayer(self._office.config, self.slot)
    values = [
      ray.get(a) if isinstance(a, ray.ObjectRef) else a for a in arguments
    ]
    with tf.device("CPU:0"):  # as elsewhere: actors have no GPU
      return getattr(self._here, method)(*values)


def _own(state: EnvironmentState) -> EnvironmentState:
  return EnvironmentState(state.plain, np.array(state.actions))


def _own_course(course: Course) -> Course:
  """A copy that holds nothing of Ray's memory."""
  fresh = course.fresh and (course.fresh[0], _own(course.fresh[1]))
  return Course(course.start, np.array(course.actions), fresh)


def _short(error: Exception) -> str:
  """What Ray says of a loss, without its paragraphs."""
  if isinstance(error, exceptions.ActorDiedError):
    lines = str(error).strip().splitlines()
    # It never began: above all where this package is not installed.
    began = not any("creation task" in line for line in lines)
    return "its process ended" if began else lines[-1].strip()
  return type(error).__name__
