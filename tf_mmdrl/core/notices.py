"""Lines to the person at the terminal, who may be gone.

A terminal can be closed, the other end of a pipe (`| tee log`) be ended by the
same Ctrl-C, a log lie on the disk that is full. None of these is a reason to
end what was going on.
"""

import contextlib
import sys
from typing import Optional, TextIO


def warn(text: str) -> None:
  """Shows a warning."""
  show(f"mmdrl: warning: {text}\n")


def note(text: str) -> None:
  """Says what is going on."""
  show(f"mmdrl: {text}\n")


def show(text: str, stream: Optional[TextIO] = None) -> None:
  """Writes text as it is, if anybody can be reached.

  Args:
    text: with its end of line.
    stream: where to; standard error if not given.
  """
  # A closed stream is a ValueError.
  with contextlib.suppress(OSError, ValueError):
    stream = stream or sys.stderr
    stream.write(text)
    stream.flush()
