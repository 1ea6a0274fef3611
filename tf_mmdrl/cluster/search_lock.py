"""One search or sweep at a time in a directory."""

import contextlib
import fcntl
import os
import pathlib
from typing import Iterator

from tf_mmdrl.core import errors


@contextlib.contextmanager
def alone(directory: pathlib.Path) -> Iterator[None]:
  """Keeps others out; the system itself lets go after a crash.

  Two searches would take each other's trials for such that a kill has cut, two
  sweeps each other's runs for failed ones.

  Args:
    directory: of the search or sweep; made if there is none.
  """
  # A link would lead to a file that is none of ours.
  flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
  try:
    directory.mkdir(parents=True, exist_ok=True)
    file = os.open(directory / "lock", flags, 0o644)
  except OSError as error:
    raise errors.UserError(
      f"cannot write to {str(directory)!r}: {error.strerror}; pass another"
      " --run-dir"
    ) from None
  try:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise errors.UserError(
        f"another search or sweep goes on in {str(directory)!r}; wait or pass"
        " another --run-dir"
      ) from None
    yield
  finally:
    os.close(file)
