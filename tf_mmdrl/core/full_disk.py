"""Errors of a disk in one line, whoever found them."""

import errno
import os
import pathlib
import shutil

from tf_mmdrl.core.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KNOWN = (*_FULL, errno.EROFS, errno.EACCES)


def reason(error: Exception) -> str:
  """What is wrong with a disk, in the system's words.

  TensorFlow's errors are no `OSError`; they have these words in the middle of
  many others.
  """
  text = getattr(error, "strerror", None) or str(error)
  words = (os.strerror(number) for number in _KNOWN)
  return next((word for word in words if word in text), text.split("\n")[0])


def refused(path: pathlib.Path, error: Exception, size: int = 0) -> UserError:
  """What could not be written, why, and on a full disk what it takes.

  Args:
    path: of the file or directory.
    error: what was raised; nothing of the file is left.
    size: bytes that it takes at least; 0 if that is not known.
  """
  why = reason(error)
  if why not in map(os.strerror, _FULL):
    return UserError(f"cannot write to {str(path)!r}: {why}; pass another")
  there = next(p for p in path.absolute().parents if p.is_dir())
  left = f"it {shortage(size, there)}" if size else room(there)
  return UserError(f"cannot write {str(path)!r}: {why}; {left}")


def shortage(size: int, directory: pathlib.Path) -> str:
  """What something needs, and what is free where it did not fit, in words.

  Args:
    size: bytes of its content, without which files it is in.
    directory: where it was to be.
  """
  try:
    free = shutil.disk_usage(directory).free
  except OSError:
    return f"needs {in_words(size)} or more, and {room(directory)}"
  if size <= free:
    return (
      f"needs more than the {in_words(free)} that are free: {in_words(size)} of"
      " content, and whole blocks, names and checksums of each file"
    )
  need, there = in_words(size), in_words(free)
  if need == there:  # they differ by less than is shown
    need, there = f"{size:,} bytes", f"{free:,} bytes"
  return f"needs {need} or more, and {there} are free"


def room(directory: pathlib.Path) -> str:
  """How much is free where a directory is, in words."""
  try:
    return f"{in_words(shutil.disk_usage(directory).free)} are free"
  except OSError:
    return "how much is free is not known"


def in_words(size: int) -> str:
  """A number of bytes."""
  if size < 1e3:
    return f"{size} bytes"
  return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
