"""Errors of a disk in one line, whoever found them."""

import errno
import os
import pathlib
import shutil

_KNOWN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES)


def reason(error: Exception) -> str:
  """What is wrong with a disk, in the system's words.

  TensorFlow's errors are no `OSError`; they have these words in the middle of
  many others.
  """
  text = getattr(error, "strerror", None) or str(error)
  words = (os.strerror(number) for number in _KNOWN)
  return next((word for word in words if word in text), text.split("\n")[0])


def room(directory: pathlib.Path) -> str:
  """How much is free where a directory is, in words."""
  try:
    return f"{megabytes(shutil.disk_usage(directory).free)} are free"
  except OSError:
    return "how much is free is not known"


def megabytes(size: int) -> str:
  """A number of bytes in words."""
  return f"{size / 1e6:,.1f} MB"
