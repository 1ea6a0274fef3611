"""Lines to the person at the terminal, who may be gone.

A terminal can be closed, the other end of a pipe (`| tee log`) be ended by the
same Ctrl-C, a log lie on the disk that is full. None of these is a reason to
end what was going on.
"""

import contextlib
import os
import sys
from typing import Iterator, Optional, TextIO


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


@contextlib.contextmanager
def silence() -> Iterator[None]:
  """Lets nothing of this process reach standard error, C++ included.

  For libraries that write there whatever they are told.
  """
  sys.stderr.flush()
  kept = os.dup(2)
  try:
    with open(os.devnull, "wb") as nowhere:
      os.dup2(nowhere.fileno(), 2)
    yield
  finally:
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)
