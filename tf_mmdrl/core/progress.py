"""One line of progress: rewritten in a terminal, plain lines elsewhere."""

import shutil
import sys
import time
from typing import Any, List, Optional, TextIO, Type

from tf_mmdrl.core import notices

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_REWRITES = 0.1
_WIDE = 80  # columns from which on there is a bar
_BAR = 12


class Progress:
  """Shows how far a long run is.

  In a terminal one line is rewritten, cut to the terminal's width. Elsewhere
  (a log file, a pipe) a plain line appears at most every ten seconds. Use it as
  a context manager, so that the line is ended whatever happens.

  Attributes:
    draws: whether what is shown may have bars and curves.
  """

  def __init__(
    self,
    total: float,
    label: str,
    stream: Optional[TextIO] = None,
    *,
    first: float = 0,
  ):
    """Begins at zero, or where an earlier run stopped.

    Args:
      total: what `update` will count to.
      label: what is running.
      stream: where to write; standard error if not given.
      first: what is done already; the time left is estimated without it.
    """
    self._total = total
    self._label = label
    self._stream = stream or sys.stderr
    self._terminal = self._stream.isatty()
    encoding = getattr(self._stream, "encoding", None) or "ascii"
    self.draws = self._terminal and encoding.lower().startswith("utf")
    self._start = time.monotonic()
    self._pace_since, self._pace_first = self._start, first
    self._next = self._start + (0 if self._terminal else _SECONDS_BETWEEN_LINES)
    self._written = False

  def __enter__(self) -> "Progress":
    return self

  def __exit__(self, kind: Optional[Type[BaseException]], *rest: Any) -> None:
    if kind is KeyboardInterrupt:
      self._written = False  # who says so ends the line, which shows ^C
    self.close()

  def forget_pace(self, done: float) -> None:
    """Estimates the time left from here on: what follows is slower or faster.

    Args:
      done: as in `update`.
    """
    self._pace_since, self._pace_first = time.monotonic(), done

  def update(self, done: float, text: str = "") -> None:
    """Says that `done` of the total is done.

    Args:
      done: from 0 to the total.
      text: what to add to the line.
    """
    now = time.monotonic()
    if now < self._next and not (self._terminal and done >= self._total):
      return
    line = self._line(done, text, now)
    if self._terminal:
      self._next = now + _SECONDS_BETWEEN_REWRITES
      width = shutil.get_terminal_size().columns - 1
      line = "\r" + _fitting(line, width)[:width].ljust(width)
    else:
      self._next = now + _SECONDS_BETWEEN_LINES
      line += "\n"
    notices.show(line, self._stream)
    self._written = True

  def close(self) -> None:
    """Ends the rewritten line."""
    if self._terminal and self._written:
      notices.show("\n", self._stream)
    self._written = False

  def _line(self, done: float, text: str, now: float) -> str:
    share = min(1.0, done / self._total) if self._total else 1.0
    parts = [
      f"{self._label}:{self._bar(share)} {share:4.0%}",
      f"{_clock(now - self._start)} gone",
    ]
    paced = done - self._pace_first
    if paced > 0 and share < 1:
      left = (self._total - done) * (now - self._pace_since) / paced
      parts.append(f"{_clock(left)} left")
    return ", ".join(parts + ([text] if text else []))

  def _bar(self, share: float) -> str:
    """Where there is room for it."""
    if not self.draws or shutil.get_terminal_size().columns < _WIDE:
      return ""
    full = int(share * _BAR)
    return " " + "━" * full + "╌" * (_BAR - full)


def _fitting(line: str, width: int) -> str:
  """As many whole parts as fit, from the first on.

  The time that is gone makes room where something else can be shown instead.
  """
  parts = line.split(", ")
  shown = _first(parts, width)
  rest = _first([part for part in parts if not part.endswith(" gone")], width)
  has_gone = any(part.endswith(" gone") for part in shown)
  return ", ".join(rest if len(rest) > len(shown) - has_gone else shown)


def _first(parts: List[str], width: int) -> List[str]:
  """Those that fit, at least one."""
  while len(", ".join(parts)) > width and len(parts) > 1:
    parts = parts[:-1]
  return parts


def _clock(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return (
    f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
  )
