"""One search at a time in a directory."""

import contextlib
import fcntl
import os
import pathlib
from typing import Iterator

from tf_mmdrl.core import errors


@contextlib.contextmanager
def alone(directory: pathlib.Path) -> Iterator[None]:
  """Keeps other searches out; the system itself lets go after a crash.

  Two would take each other's trials for such that a kill has cut.

  Args:
    directory: of the search; made if there is none.
  """
  directory.mkdir(parents=True, exist_ok=True)
  # A link would lead to a file that is none of ours.
  flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
  file = os.open(directory / "lock", flags, 0o644)
  try:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise errors.UserError(
        f"another search goes on in {str(directory)!r}; wait for it or pass"
        " another --run-dir"
      ) from None
    yield
  finally:
    os.close(file)
