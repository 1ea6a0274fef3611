"""Directories of files that are complete, or absent, or known to be damaged."""

import contextlib
import os
import pathlib
import struct
import zlib
from typing import Callable, List

import tensorflow as tf

from tf_mmdrl.core import errors, full_disk, run_records, whole_files
from tf_mmdrl.core.whole_files import DamagedFileError

MANIFEST = run_records.MANIFEST
_TEMPORARY = ".tmp-"
_REMOVED = ".gone-"
# What reading raises where checksums hold and the content is another: files
# that were made by hand, or mixed up.
_OTHER_CONTENT = (
  ArithmeticError,
  AssertionError,
  AttributeError,
  LookupError,
  OSError,
  TypeError,
  ValueError,
  struct.error,
  tf.errors.OpError,
  zlib.error,
)


class Checkpoints:
  """Numbered checkpoints in a directory."""

  def __init__(self, directory: pathlib.Path):
    self.directory = directory

  def steps(self) -> List[int]:
    """The steps of all checkpoints, newest first; damaged ones too."""
    return list(run_records.checkpoints(self.directory))

  def path(self, step: int) -> pathlib.Path:
    """The directory of a checkpoint."""
    return self.directory / run_records.name_of(step)

  def save(
    self, step: int, write: Callable[[pathlib.Path], None], size: int = 0
  ) -> None:
    """Makes a checkpoint: everything in a temporary place, then one rename.

    One of the same step gives way in the same moment, and is there until then.

    Args:
      step: its number.
      write: fills an empty directory with files.
      size: how many bytes that takes at least, for the message if they do not
        fit.
    """
    temporary, final = self._temporary(step), self.path(step)
    try:
      self.directory.mkdir(parents=True, exist_ok=True)
      whole_files.remove(temporary)
      temporary.mkdir()
      write(temporary)
      files = {}
      for path in sorted(temporary.iterdir()):
        files[path.name] = whole_files.digest(path.read_bytes())
        _sync(path)
      whole_files.write_json(temporary / MANIFEST, {"files": files})
      if final.exists():  # damaged, or the same: both may go
        whole_files.exchange(temporary, final)
      else:
        os.rename(temporary, final)
      whole_files.sync_directory(self.directory)
    except OSError as error:
      whole_files.remove(temporary)
      raise self._not_written(step, size, error) from error
    self._sweep()

  def verify(self, step: int) -> pathlib.Path:
    """The directory, if every file is as it was written."""
    return run_records.verify(self.path(step))

  def prune(self, keep: int) -> List[int]:
    """Removes all but the newest; returns the steps that are left."""
    steps = self.steps()
    for step in steps[keep:]:
      # Under another name, so that a crash leaves nothing that seems damaged.
      os.rename(self.path(step), self.directory / f"{_REMOVED}{step:012d}")
    self._sweep()
    return steps[:keep]

  def recover(self) -> List[int]:
    """Puts complete checkpoints in their place that a crash kept from it.

    Returns:
      The steps of those that were found.
    """
    found = []
    for path in sorted(self.directory.glob(f"{_TEMPORARY}*")):
      step = run_records.step_of(
        path.name[len(_TEMPORARY) :].removesuffix("-old")
      )
      if step is None or self._is_whole(self.path(step)):
        continue
      if self._is_whole(path):
        self._put_aside(step)
        os.rename(path, self.path(step))
        found.append(step)
    return found

  def clean(self, newest: int) -> None:
    """Removes what a crash left half made, and puts damaged ones aside.

    Args:
      newest: the newest one that is whole; those after it are not.
    """
    if not self.directory.is_dir():
      return
    self._sweep()
    for step in self.steps():
      if step > newest:
        self._put_aside(step)

  def _temporary(self, step: int) -> pathlib.Path:
    return self.directory / f"{_TEMPORARY}{run_records.name_of(step)}"

  def _sweep(self) -> None:
    """Removes what is half made or half removed."""
    for kind in (_TEMPORARY, _REMOVED):
      for path in self.directory.glob(f"{kind}*"):
        whole_files.remove(path)

  def _put_aside(self, step: int) -> None:
    """Keeps a damaged one under a name that is not read."""
    if self.path(step).exists():
      aside = self.directory / f"damaged-{step:012d}"
      whole_files.remove(aside)
      os.rename(self.path(step), aside)

  def _is_whole(self, path: pathlib.Path) -> bool:
    try:
      return bool(run_records.verify(path))
    except DamagedFileError:
      return False

  def _not_written(
    self, step: int, size: int, error: Exception
  ) -> errors.UserError:
    there = self.steps()
    rest = f"that of step {there[0]} is whole" if there else "none was before"
    room = full_disk.room(self.directory)
    if size:
      room = f"It {full_disk.shortage(size, self.directory)}"
    return errors.UserError(
      f"cannot write the checkpoint of step {step}: {full_disk.reason(error)};"
      f" {rest}. {room}: make room"
      f" in {str(self.directory)!r} and run the same command again"
    )


def restore_newest(
  checkpoints: Checkpoints,
  restore: Callable[[pathlib.Path], None],
  warn: Callable[[str], None],
) -> bool:
  """Restores the newest checkpoint that is whole.

  Args:
    checkpoints: the checkpoints to choose from.
    restore: reads a directory; may raise `DamagedFileError`, and nearly
      anything if the directory holds something else.
    warn: told of each damaged one.

  Returns:
    Whether there was a checkpoint at all.
  """
  steps = checkpoints.steps()
  for step in steps:
    try:
      restore(checkpoints.verify(step))
      return True
    except DamagedFileError as error:
      warn(f"the checkpoint of step {step} is passed over: {error}")
    except errors.UserError:
      raise
    except _OTHER_CONTENT as error:
      reason = (str(error).splitlines() or [""])[0]
      warn(
        f"the checkpoint of step {step} is passed over: its checksums hold, but"
        f" it is none of this run ({type(error).__name__}: {reason})"
      )
  if steps:
    raise errors.UserError(
      f"every checkpoint in {str(checkpoints.directory)!r} is damaged; put back"
      " a copy, or remove the directory to begin anew"
    )
  return False


def _sync(path: pathlib.Path) -> None:
  with contextlib.closing(path.open("rb")) as file:
    os.fsync(file.fileno())
