"""Games that a visitor of the page watches: few at a time, each for a while.

A game is played where the server is: the page asks the model as any client
does, and sends the action that it chose here.
"""

import base64
import secrets
import struct
import time
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Protocol

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.serving.json_arrays import kind, short
from tf_mmdrl.serving.limits import Refusal

MOST = 8  # sessions at a time
_IDLE = 60.0  # seconds after which a session may give way
_LARGEST_SEED = 2**31 - 1


class Seen(NamedTuple):
  """What a game shows.

  Attributes:
    observation: what the policy is asked with.
    picture: [H, W] or [H, W, 3] uint8, for people.
    score: so far.
    over: whether the game has ended; the next action begins another.
  """

  observation: np.ndarray
  picture: np.ndarray
  score: float
  over: bool


class Game(Protocol):
  """A game under way."""

  @property
  def actions(self) -> List[str]:
    """What the actions are called."""

  def begin(self) -> Seen:
    """The first thing to see."""

  def step(self, action: int) -> Seen:
    """Takes an action."""

  def close(self) -> None:
    """Ends it."""


class _Session:
  def __init__(self, game: Game):
    self.game = game
    self.used = time.monotonic()


class Games:
  """The sessions of all visitors; one thread at a time may call it."""

  def __init__(
    self,
    names: List[str],
    make: Callable[[str, int], Game],
    *,
    most: int = MOST,
    idle_seconds: float = _IDLE,
  ):
    """Begins none.

    Args:
      names: of the games that may be played, and no others.
      make: makes one from its name and a seed.
      most: sessions at a time.
      idle_seconds: after which a session gives way to a new one.
    """
    self.names = names
    self._make = make
    self._most = most
    self._idle_seconds = idle_seconds
    self._sessions: Dict[str, _Session] = {}

  def begin(self, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Begins a session.

    Args:
      wanted: the `game`, a `seed` if it should be a certain one, and the
        session that it `replaces` if that is to end.

    Returns:
      What to send: the session, its actions and what there is to see.
    """
    name = wanted.get("game", self.names[0])
    if name not in self.names:
      text = short(name) if isinstance(name, str) else kind(name)
      raise errors.unknown_name("game", text, self.names)
    seed = _whole(wanted.get("seed", 0), "seed", _LARGEST_SEED)
    old = self._replaced(wanted.get("replaces"))
    if old is None:
      self._make_room()
    game = self._make(name, seed)
    try:
      seen = _shown(game.begin())
      actions = game.actions
      if old is not None:
        self._sessions.pop(old).game.close()
    except BaseException:
      game.close()  # nobody could ask for it
      raise
    key = secrets.token_urlsafe(12)
    self._sessions[key] = _Session(game)
    return {"session": key, "game": name, "actions": actions, **seen}

  def step(self, key: str, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Takes the `action` of a session; returns what to send."""
    session = self._sessions.get(key)
    if session is None:
      raise Refusal(404, "there is no such session any more; begin another")
    last = len(session.game.actions) - 1
    action = _whole(wanted.get("action"), "action", last)
    session.used = time.monotonic()
    return _shown(session.game.step(action))

  def close(self) -> None:
    """Ends all."""
    for session in self._sessions.values():
      session.game.close()
    self._sessions.clear()

  def _replaced(self, key: Any) -> Optional[str]:
    """The session that is to end; None if it has given way already."""
    if key is not None and not isinstance(key, str):
      raise errors.UserError(f'"replaces" must be a session, got {kind(key)}')
    return key if key in self._sessions else None

  def _make_room(self) -> None:
    if len(self._sessions) < self._most:
      return
    key = min(self._sessions, key=lambda one: self._sessions[one].used)
    if time.monotonic() - self._sessions[key].used < self._idle_seconds:
      raise Refusal(503, f"{self._most} games are under way; try again later")
    self._sessions.pop(key).game.close()


def png(picture: np.ndarray) -> bytes:
  """A picture [H, W] or [H, W, 3] of uint8 as a PNG file."""
  colours = picture.ndim == 3
  height, width = picture.shape[:2]
  rows = np.ascontiguousarray(picture, np.uint8).reshape([height, -1])
  # A zero before each row: it is not filtered.
  lines = np.concatenate([np.zeros([height, 1], np.uint8), rows], axis=1)
  header = struct.pack(">2I5B", width, height, 8, 2 if colours else 0, 0, 0, 0)
  return b"\x89PNG\r\n\x1a\n" + b"".join(
    _chunk(name, data)
    for name, data in (
      (b"IHDR", header),
      (b"IDAT", zlib.compress(lines.tobytes(), 1)),
      (b"IEND", b""),
    )
  )


def _chunk(name: bytes, data: bytes) -> bytes:
  check = struct.pack(">I", zlib.crc32(name + data))
  return struct.pack(">I", len(data)) + name + data + check


def _shown(seen: Seen) -> Dict[str, Any]:
  picture = base64.b64encode(png(seen.picture)).decode()
  return {
    "observation": np.ascontiguousarray(seen.observation),
    "picture": f"data:image/png;base64,{picture}",
    "score": seen.score,
    "over": seen.over,
  }


def _whole(value: Any, name: str, largest: int) -> int:
  """A whole number from 0 on; JSON's true is none."""
  if not isinstance(value, int) or isinstance(value, bool):
    raise errors.UserError(
      f'"{name}" must be a whole number, got {kind(value)}'
    )
  if not 0 <= value <= largest:
    raise errors.UserError(
      f'"{name}" must lie in 0..{largest}, got {kind(value)}'
    )
  return value
