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
  takes = f"it takes {in_words(size)} or more, and " if size else ""
  there = (parent for parent in path.absolute().parents if parent.is_dir())
  return UserError(
    f"cannot write {str(path)!r}: {why}; {takes}{room(next(there))}"
  )


def room(directory: pathlib.Path) -> str:
  """How much is free where a directory is, in words."""
  try:
    return f"{in_words(shutil.disk_usage(directory).free)} are free"
  except OSError:
    return "how much is free is not known"


def in_words(size: int) -> str:
  """A number of bytes."""
  return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
