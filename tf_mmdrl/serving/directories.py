"""Numbered versions in a directory; each appears whole or not at all.

The layout is TensorFlow Serving's. Names that are no numbers are invisible to
it: `.lock`, and what is being made or removed.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
from typing import Iterator, List, Optional

from tf_mmdrl.core import errors, whole_files

EXPORT = "export"  # in a run: the directory of its versions
_TEMPORARY = ".tmp-"


def versions(directory: pathlib.Path) -> List[int]:
  """The numbers there are, in order."""
  if not directory.is_dir():
    return []
  names = (path.name for path in directory.iterdir() if path.is_dir())
  numbers = ((name, int(name)) for name in names if name.isdecimal())
  # Only "7" is version 7: "007" is another name.
  return sorted(number for name, number in numbers if name == str(number))


def find(directory: pathlib.Path, number: Optional[int] = None) -> int:
  """The number, if there is such a version; the newest if None."""
  there = versions(directory)
  if not there:
    raise nothing_in(directory)
  number = there[-1] if number is None else number
  if number not in there:
    names = ", ".join(map(str, there))
    raise errors.UserError(f"there is no version {number}; there are {names}")
  return number


def find_of_run(run: pathlib.Path, number: Optional[int] = None) -> int:
  """The same among the versions that a run has exported.

  Args:
    run: the run's directory.
    number: of the version; the newest if None.
  """
  exports = run / EXPORT
  if not versions(exports):
    raise errors.UserError(
      f"the run in {str(run)!r} has no exported policy yet: training exports at"
      " its evaluations and at its end; run mmdrl export to export its newest"
      " checkpoint"
    )
  return find(exports, number)


def nothing_in(directory: pathlib.Path) -> errors.UserError:
  """Says what to pass instead of a directory without versions."""
  if not directory.is_dir():
    return errors.UserError(f"there is no directory {str(directory)!r}")
  inner = directory / EXPORT
  if versions(inner):
    return errors.UserError(
      f"{str(directory)!r} is a run; pass its policies, {str(inner)!r}"
    )
  if directory.name.isdecimal() and versions(directory.parent):
    return errors.UserError(
      f"{str(directory)!r} is one version; pass {str(directory.parent)!r},"
      " which holds it"
    )
  return errors.UserError(
    f"there is no exported policy in {str(directory)!r} yet; run mmdrl export"
  )


@contextlib.contextmanager
def publishing(directory: pathlib.Path, number: int) -> Iterator[pathlib.Path]:
  """A path to make a version at; without an error it becomes visible at once.

  Whatever ends the process, and whenever: the versions of before stay, and an
  older one of the same number is there until the new one is.
  """
  final = directory / str(number)
  temporary = directory / f"{_TEMPORARY}{number}"
  with whole_files.made(directory), _locked(directory):
    _clean(directory)
    try:
      yield temporary
      _sync(temporary)
      if final.exists():
        whole_files.exchange(temporary, final)
      else:
        os.rename(temporary, final)
      _sync_one(directory)
    finally:
      _clean(directory)


def remove(directory: pathlib.Path, number: int) -> None:
  """Removes a version; it is never seen in part."""
  with _locked(directory):
    hidden = directory / f"{_TEMPORARY}{number}"
    os.rename(directory / str(number), hidden)
    shutil.rmtree(hidden)


@contextlib.contextmanager
def _locked(directory: pathlib.Path) -> Iterator[None]:
  """One writer at a time; the system itself unlocks after a crash."""
  path = directory / ".lock"
  lock = _lock(path)
  try:
    yield
  except BaseException:
    if not versions(directory):
      path.unlink(missing_ok=True)  # or it would be all that is left
    raise
  finally:
    os.close(lock)


def _lock(path: pathlib.Path) -> int:
  """A descriptor of the file, which no one else has locked."""
  while True:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
      fcntl.flock(lock, fcntl.LOCK_EX)
      # Who had it before may have removed it, and others lock the next one.
      with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), path.lstat()):
          return lock
    except BaseException:
      os.close(lock)
      raise
    os.close(lock)


def _clean(directory: pathlib.Path) -> None:
  for orphan in directory.glob(f"{_TEMPORARY}*"):
    whole_files.remove(orphan)


def _sync(path: pathlib.Path) -> None:
  """Everything below is on the disk before its name is."""
  for directory, _, files in os.walk(path):
    for name in files:
      _sync_one(pathlib.Path(directory, name))
    _sync_one(pathlib.Path(directory))


def _sync_one(path: pathlib.Path) -> None:
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
