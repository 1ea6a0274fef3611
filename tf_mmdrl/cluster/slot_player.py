"""The actor of a slot as it runs in a process of its own, on any machine.

It owns nothing that is not in its arguments: a place names where to play on,
and how to get there. A player that is there already plays on at once; any other
one, a new process too, goes there first. So whoever dies is replaced by calling
another one with the same arguments, and the same bits come; where an
environment does not let them come, that is an error.
"""

import os
import socket
import threading
import uuid
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.cluster import packing
from tf_mmdrl.train import factories, machine, trainer
from tf_mmdrl.train.actor import Actor, ActorState, Weights
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.environment_states import EnvironmentState, Moment


class Course(NamedTuple):
  """How to get to a moment.

  Attributes:
    start: JSON values, which name what the actions begin at.
    actions: [T, B] to play from there.
    fresh: with environment.resume=fresh instead: the actor as it is saved.
  """

  start: Dict[str, Any]
  actions: np.ndarray
  fresh: Optional[Tuple[Dict[str, Any], EnvironmentState]] = None


class Place(NamedTuple):
  """Where a slot is: all that decides what it plays next, with weights.

  Attributes:
    token: of the player that is there already.
    step: steps taken, over the slot's environments.
    running: [B] scores so far of the games under way.
    kept: [B, 1], what the player keeps through an episode.
    base: a list of one reference to a course; in a list, so that Ray brings it
      to those alone who ask.
    since: [T, B] actions after that course.
    seen: a checksum of what all these led to.
  """

  token: str
  step: int
  running: np.ndarray
  kept: np.ndarray
  base: List[Any]
  since: np.ndarray
  seen: int


class Move(NamedTuple):
  """From one place to the next.

  Attributes:
    token: of the new place.
    step: there.
    running: there.
    kept: there.
    actions: [T, B] that led there.
    seen: a checksum there.
    course: if the actions do not go on from the old place's course, the whole
      way to the new one.
  """

  token: str
  step: int
  running: np.ndarray
  kept: np.ndarray
  actions: np.ndarray
  seen: int
  course: Optional[Course]


class Introduction(NamedTuple):
  """Who plays a slot.

  Attributes:
    host: the machine's name.
    process: its number there.
    surroundings: versions and machine, as `train.machine` describes them.
    replayed_because: why the environments' state cannot be saved, if so.
  """

  host: str
  process: int
  surroundings: Dict[str, Any]
  replayed_because: Optional[str]


class SlotPlayer:
  """Plays a slot of a run, as a Ray actor, or in the learner's process."""

  def __init__(self, config: Config, slot: int, threads: Sequence[int] = ()):
    """Makes nothing yet: an error then is a call's, and names its reason.

    Args:
      config: of the run.
      slot: which.
      threads: that TensorFlow computes an operation with, and how many
        operations at a time, as in the learner's process; these decide the
        last bits. Empty in that process itself.
    """
    self._made: Optional[Actor] = None
    self._make = (config, slot, threads)
    self._is_fresh = config.environment.resume == "fresh"
    self._token = ""
    self._state: Any = None
    self._lock = threading.Lock()

  @property
  def _actor(self) -> Actor:
    with self._lock:
      if self._made is None:
        config, slot, threads = self._make
        if threads:
          tf.config.threading.set_intra_op_parallelism_threads(threads[0])
          tf.config.threading.set_inter_op_parallelism_threads(threads[1])
          trainer.configure_process(config)
          # For the first weights, which those that come replace.
          tf.keras.utils.set_random_seed(slot)
        environment = factories.environment(config, slot)
        self._stack = factories.frame_stack(environment)
        self._dtype = environment.action_spec().dtype
        self._made = factories.actor(config, environment, slot)
    return self._made

  def introduce(self) -> Introduction:
    """Who this is."""
    return Introduction(
      socket.gethostname(),
      os.getpid(),
      machine.surroundings(),
      self._actor.replayed_because,
    )

  def begin(self) -> Move:
    """To the place before the first step."""
    return self._arrive(None, self._actor.begin())

  def play(
    self, place: Place, weights: Weights, num_steps: int
  ) -> Tuple[packing.PackedChunk, Move]:
    """Takes `num_steps` of each environment, from `place` on."""
    before = self._go_to(place)
    chunk, state = self._actor.play(before, weights, num_steps)
    return packing.pack(chunk, self._stack), self._arrive(before, state)

  def save(
    self, place: Place
  ) -> Tuple[Dict[str, Any], EnvironmentState, Optional[str]]:
    """`Actor.save`, and why a run could not go on from it, if so."""
    plain, environment = self._actor.save(self._go_to(place))
    return plain, environment, self._actor.problem

  def restored(
    self, plain: Dict[str, Any], environment: EnvironmentState
  ) -> Move:
    """To the place that `save` gave these of."""
    return self._arrive(None, self._actor.restored(plain, environment))

  def close(self) -> None:
    """Closes the environments."""
    if self._made is not None:
      self._made.close()

  def _go_to(self, place: Place) -> ActorState:
    """Where `place` is; `Actor.play` brings the environments there."""
    if place.token == self._token:
      return self._state
    course = _fetch(place.base[0])
    if course.fresh is not None:
      self._state = self._actor.restored(*course.fresh)
    else:
      record = [*course.actions, *place.since]
      moment = Moment(course.start, record, len(record), place.seen)
      self._state = ActorState(place.step, place.running, place.kept, moment)
    self._token = place.token
    return self._state

  def _arrive(self, before: Optional[ActorState], state: ActorState) -> Move:
    self._state, self._token = state, uuid.uuid4().hex
    course, moment = None, state.moment
    record = moment.record[: moment.num_actions]
    # A new start is named anew; before it nothing has to be played again.
    goes_on = before is not None and moment.start is before.moment.start
    if goes_on and before is not None:
      record = record[before.moment.num_actions :]
    shape = [len(record), len(state.running)]
    actions = np.array(record, self._dtype).reshape(shape)
    if self._is_fresh or self._actor.environment.begins_anew:
      saved = self._actor.save(state)
      course = Course(moment.start, actions, fresh=saved)
    elif not goes_on:
      course = Course(moment.start, actions)
    step, running, kept, _ = state
    seen = moment.seen
    return Move(self._token, step, running, kept, actions, seen, course)


def _fetch(base: Any) -> Course:
  if isinstance(base, Course):  # in the learner's own process
    return base
  import ray

  return ray.get(base)
