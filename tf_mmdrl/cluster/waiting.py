"""Waits that end, and say whom they wait for."""

import time
from typing import NamedTuple, Optional

from tf_mmdrl.core import notices
from tf_mmdrl.train.stopping import Stop


class Patience(NamedTuple):
  """How long the learner waits for one call, in seconds.

  Attributes:
    tell: after which it says whom it waits for, and again after as much.
    give_up: after which the run stops with a checkpoint.
    hurry: once the run was told to stop.
    reconnect: for an actor that is there and cannot be reached.
    attempts: how many actors may die over a call; the learner plays then.
  """

  tell: float = 60.0
  give_up: float = 600.0
  hurry: float = 10.0
  reconnect: float = 20.0
  attempts: int = 5


PATIENCE = Patience()


class LateError(Exception):
  """Nobody answered in time."""


class Clock:
  """How long one call has waited."""

  def __init__(
    self, patience: Patience = PATIENCE, stop: Optional[Stop] = None
  ):
    self._patience = patience
    self._stop = stop or Stop()
    self._began = time.monotonic()
    self._told = 0.0
    self._asked: Optional[float] = None
    self._unreachable: Optional[float] = None

  @property
  def waited(self) -> float:
    """Seconds since the call began."""
    return time.monotonic() - self._began

  @property
  def has_told(self) -> bool:
    """Whether it was said whom the run waits for."""
    return self._told > 0

  def next(self) -> float:
    """Seconds until there is something to look at, at most."""
    patience = self._patience
    shortest = min(patience.tell, patience.give_up, patience.hurry)
    return min(1.0, shortest / 4)

  def is_unreachable(self) -> bool:
    """Whether an actor was out of reach for too long; called each time."""
    now = time.monotonic()
    self._unreachable = self._unreachable or now
    if now - self._unreachable < self._patience.reconnect:
      return False
    self._unreachable = None
    return True

  def look(self, whom: str) -> None:
    """Says whom the run waits for; raises `LateError` at the end."""
    patience = self._patience
    if self._stop.asked:
      self._asked = self._asked or time.monotonic()
      if time.monotonic() - self._asked > patience.hurry:
        raise LateError
    if self.is_late:
      raise LateError
    self.tell(whom)

  @property
  def is_late(self) -> bool:
    """Whether a run that waits for it should stop."""
    return self.waited > self._patience.give_up

  def tell(self, whom: str) -> None:
    """Says whom the run waits for, every so often."""
    waited = self.waited
    if waited - self._told > self._patience.tell:
      self._told = waited
      notices.note(f"has waited {waited:.0f} s for {whom}")

  def give_up(self, whom: str) -> None:
    """Asks the run to stop with a checkpoint."""
    if not self._stop.asked:
      notices.warn(
        f"nobody has answered for {self.waited / 60:.0f} minutes: {whom}. The"
        " run stops with a checkpoint; the same command goes on"
      )
    self._stop.asked = True
