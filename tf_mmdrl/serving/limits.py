"""What clients may ask of the server, and how much of it is under way."""

import dataclasses

from tf_mmdrl.core import errors

# How many bytes of memory a request needs at most for each byte that it is
# counted with: its numbers of eight bytes each were at least two characters,
# and an answer stands in a buffer and in the socket's queue.
_COPIES = 4
# Python's objects for JSON are up to 25 times as large as its text, and the
# allocators keep some of it. Bodies are read one at a time.
_OBJECTS = 40
# What a connection holds at most by `serving.buffers`, if its client sends
# requests without end and takes no answer: four requests with headers of 48
# KiB, which take half as much again as objects, part of a fifth, what was read
# and not parsed, and answers. TLS adds what was read and not decrypted yet, and
# OpenSSL's own state.
_CONNECTION = 512 * 2**10
_TLS_CONNECTION = 640 * 2**10


@dataclasses.dataclass(frozen=True)
class Limits:
  """What clients may ask for.

  Attributes:
    body_bytes: the largest body of a request.
    answer_bytes: the largest answer, known before the model runs.
    pending_bytes: the most bytes of all bodies and answers under way; more are
      told to come back.
    concurrent: predictions under way; more are told to come back.
    connections: open at a time; more are closed at once.
    seconds: how long a client may take to send its headers, to send a body and
      to take an answer, and the model to answer; each.
    idle_seconds: before a connection without a request is closed.
    batch: observations in one run of the model.
    tls: whether connections speak TLS, which takes more memory for each.
  """

  body_bytes: int = 8 * 2**20
  answer_bytes: int = 8 * 2**20
  pending_bytes: int = 64 * 2**20
  concurrent: int = 128
  connections: int = 512
  seconds: float = 10.0
  idle_seconds: float = 60.0
  batch: int = 64
  tls: bool = False

  @property
  def memory_bytes(self) -> int:
    """The most that requests take, beside TensorFlow and the models."""
    return (
      _COPIES * self.pending_bytes
      + _OBJECTS * self.body_bytes
      + (_TLS_CONNECTION if self.tls else _CONNECTION) * self.connections
    )


class Refusal(errors.UserError):
  """A request that gets another status than 400."""

  def __init__(self, status: int, text: str):
    super().__init__(text)
    self.status = status


class UnderWay:
  """Predictions under way, and the bytes that are kept for them."""

  def __init__(self, limits: Limits):
    """Begins with none."""
    self.limits = limits
    self.count = 0
    self.bytes = 0


class Place:
  """One request's share of what is under way."""

  def __init__(self, under_way: UnderWay):
    """Begins with nothing."""
    self._all = under_way
    self._count = 0
    self._bytes = 0

  def enter(self) -> None:
    """Counts as a prediction, or is refused."""
    if self._all.count >= self._all.limits.concurrent:
      raise Refusal(503, "too many requests are under way; try again")
    self._count += 1
    self._all.count += 1

  def take(self, size: int) -> None:
    """Keeps so many bytes more, or is refused."""
    limit, kept = self._all.limits.pending_bytes, self._all.bytes
    if kept + size > limit:
      raise Refusal(
        503,
        f"requests under way take {kept} of {limit} bytes, and this one {size}"
        " more; try again",
      )
    self._bytes += size
    self._all.bytes += size

  def leave(self) -> None:
    """Gives everything back."""
    self._all.count -= self._count
    self._all.bytes -= self._bytes
    self._count = self._bytes = 0
