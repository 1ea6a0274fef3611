"""What every file of a version was when it was written.

A version's `manifest.json` names each of its files with its size and SHA-256,
and carries a checksum of itself.
"""

import hashlib
import json
import os
import pathlib
import stat
from typing import Any, Dict, Iterator, Tuple

from tf_mmdrl.core import errors, whole_files

MANIFEST = "manifest.json"
METADATA = "metadata.json"  # among the assets
# Of what `publish` writes; 1 had no manifest and did not say its number.
FORMAT = 2
# Where TensorFlow Serving wants files that it should leave alone; others may
# put theirs there later.
EXTRAS = "assets.extra"

_CHUNK = 2**20


class DamagedVersionError(errors.UserError):
  """A version is not what was published, or no whole SavedModel.

  Attributes:
    reason: what is wrong with it, without its name.
  """

  def __init__(self, reason: str, where: str = ""):
    super().__init__(f"{where}{reason}")
    self.reason = reason


def write(path: pathlib.Path) -> None:
  """Records every file below `path` in its manifest."""
  files = {name: _describe(path / name) for name in _files(path)}
  content = {"format": FORMAT, "files": files}
  whole_files.write_json(path / MANIFEST, content)


def verify(path: pathlib.Path) -> bool:
  """Compares every file of a version with its manifest.

  Args:
    path: the version's directory.

  Returns:
    Whether there was a manifest to compare with.

  Raises:
    DamagedVersionError: if a file is missing, changed or not in the manifest,
      or if there is a link or a device anywhere, also without a manifest.
  """
  there = set(_files(path))
  if MANIFEST not in there:
    return False
  recorded = _read(path)
  for name, wanted in recorded.items():
    if name not in there:
      raise DamagedVersionError(f"{name!r} is missing")
    if _describe(path / name) != wanted:
      raise DamagedVersionError(
        f"{name!r} is damaged: its checksum is not the one written"
      )
  for name in sorted(there - set(recorded) - {MANIFEST}):
    if not name.startswith(f"{EXTRAS}/"):
      raise DamagedVersionError(
        f"{name!r} is not in its manifest; remove it, or put it into {EXTRAS}"
      )
  return True


def metadata(directory: pathlib.Path, number: int) -> Dict[str, Any]:
  """What was written beside a version; empty for a model of others."""
  path = directory / str(number) / "assets" / METADATA
  try:
    return dict(json.loads(path.read_text()))
  except FileNotFoundError:
    return {}
  except (OSError, ValueError, TypeError, RecursionError) as error:
    raise errors.UserError(f"{str(path)!r} cannot be read: {error}") from None


def identity(path: pathlib.Path) -> Tuple[Any, ...]:
  """Changes whenever any file below `path` does; reads none of them."""
  found = []
  for directory, folders, files in os.walk(path):
    for name in (".", *folders, *files):
      file = os.path.join(directory, name)
      try:
        status = os.lstat(file)
      except FileNotFoundError:  # removed this moment
        continue
      found.append((file, status.st_ino, status.st_mtime_ns, status.st_size))
  return tuple(sorted(found))


def _read(path: pathlib.Path) -> Dict[str, Dict[str, Any]]:
  """The manifest's files."""
  try:
    content = whole_files.read_json(path / MANIFEST)
  except whole_files.DamagedFileError:
    raise DamagedVersionError(
      f"{MANIFEST!r} is damaged: its checksum is not the one written"
    ) from None
  if content["format"] > FORMAT:
    raise DamagedVersionError(
      f"it is in a later format, {content['format']}; this version reads up to"
      f" {FORMAT}. Install a newer tf-mmdrl"
    )
  return content["files"]


def _files(path: pathlib.Path) -> Iterator[str]:
  """The relative names of all files, sorted; refuses what is none."""
  for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
    if entry.is_dir(follow_symlinks=False):
      for name in _files(path / entry.name):
        yield f"{entry.name}/{name}"
      continue
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
      raise DamagedVersionError(
        f"{entry.name!r} is a link; copy the file that it leads to"
      )
    if not stat.S_ISREG(mode):
      raise DamagedVersionError(f"{entry.name!r} is no regular file")
    yield entry.name


def _describe(path: pathlib.Path) -> Dict[str, Any]:
  sha256 = hashlib.sha256()
  with path.open("rb") as file:
    while chunk := file.read(_CHUNK):
      sha256.update(chunk)
  return {"bytes": path.stat().st_size, "sha256": sha256.hexdigest()}
