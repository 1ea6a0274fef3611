"""Directories that live as long as a process, also if it is killed.

Each is its owner's alone and holds a lock. Whoever makes another one removes
those whose lock nobody holds any more.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
import time
from typing import Iterator, Optional

_NEW = 60.0  # seconds in which one may not have its lock yet


class OwnPlace:
  """A directory for as long as this process lives.

  Attributes:
    path: the directory.
  """

  def __init__(self, prefix: str, parent: Optional[pathlib.Path] = None):
    """Makes it, and removes those of processes that were killed.

    Args:
      prefix: of its name.
      parent: in which it is; None: where temporary files are.
    """
    parent = parent or pathlib.Path(tempfile.gettempdir())
    _remove_leftovers(parent, prefix)
    self.path = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    self._lock = _locked(self.path)

  def close(self) -> None:
    """Removes it."""
    shutil.rmtree(self.path, ignore_errors=True)
    if self._lock is not None:
      os.close(self._lock)
      self._lock = None


@contextlib.contextmanager
def lent(prefix: str, parent: pathlib.Path) -> Iterator[pathlib.Path]:
  """A directory as long as the context lasts; see `OwnPlace`."""
  place = OwnPlace(prefix, parent)
  try:
    yield place.path
  finally:
    place.close()


def _remove_leftovers(parent: pathlib.Path, prefix: str) -> None:
  for path in parent.glob(f"{prefix}*"):
    with contextlib.suppress(OSError):
      status = path.lstat()
      is_new = time.time() - status.st_mtime < _NEW
      if status.st_uid != os.getuid() or is_new or path.is_symlink():
        continue
      lock = _locked(path)
      if lock is not None:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _locked(path: pathlib.Path) -> Optional[int]:
  """A descriptor that holds the directory's lock; None if another one does."""
  flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
  lock = os.open(path / "lock", flags, 0o600)
  try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    os.close(lock)
    return None
  return lock
