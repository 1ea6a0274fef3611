"""A run's files on the machine that trains it, and the same ones at home.

For clusters without a path that all machines share. What the run writes where
it is trained is fetched while it goes on, so that another machine can go on
from the newest checkpoint if that one is lost.

A checkpoint appears at home in one moment, after everything that it names: at
any time the copy is what a run leaves that is killed.
"""

import os
import pathlib
import shutil
from typing import Dict, Iterable, Iterator, List, NamedTuple, Set

from tf_mmdrl.core import errors, whole_files

_PIECE = 32 << 20  # bytes that travel at a time, unless a file is larger
_WHOLE = ("checkpoints", "export")  # what is below them appears in one moment
_UNFINISHED = (".tmp-", ".gone-")
_CONFIG = "config.json"  # without it other files are taken for no run's


class Stamp(NamedTuple):
  """By which a file is known to be as it was."""

  size: int
  changed: int


Listing = Dict[str, Stamp]


def listing(root: pathlib.Path) -> Listing:
  """The files below a directory, but for locks and what is half made.

  Args:
    root: the directory; it need not exist.

  Returns:
    By their paths below it.
  """
  found = {}
  for folder, _, names in os.walk(root):
    for name in names:
      path = pathlib.Path(folder, name)
      short = path.relative_to(root)
      if name == "lock" or name.endswith(whole_files.TEMPORARY):
        continue
      if any(part.startswith(_UNFINISHED) for part in short.parts):
        continue
      try:
        status = path.lstat()
      except FileNotFoundError:  # the run has removed it
        continue
      if path.is_file() and not path.is_symlink():
        found[str(short)] = Stamp(status.st_size, status.st_mtime_ns)
  return found


def read(root: pathlib.Path, names: Iterable[str]) -> Dict[str, bytes]:
  """The contents of files; those that have gone are left out."""
  found = {}
  for name in names:
    try:
      found[name] = (root / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
      continue
  return found


def write(root: pathlib.Path, contents: Dict[str, bytes]) -> None:
  """Writes files, each of them whole."""
  for name, content in sorted(contents.items(), key=lambda i: i[0] != _CONFIG):
    path = root / _safe(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_files.write(path, content)


def pieces(there: Listing) -> Iterator[List[str]]:
  """Names of files, in lists of a size that travels well."""
  names: List[str] = []
  size = 0
  for name, stamp in there.items():
    if names and size + stamp.size > _PIECE:
      yield names
      names, size = [], 0
    names.append(name)
    size += stamp.size
  if names:
    yield names


class HomeCopy:
  """The copy of a run at home, kept as the run is elsewhere."""

  def __init__(self, root: pathlib.Path):
    """Looks at nothing yet.

    Args:
      root: the run's directory at home.
    """
    self._root = root
    self._known: Listing = {}

  def begin(self, there: Listing) -> None:
    """Takes the copy for the same as what it was made from, or sent to."""
    self._known = dict(there)

  def wanted(self, there: Listing) -> Listing:
    """What has to be fetched: files that are new or have changed."""
    return {n: s for n, s in there.items() if self._known.get(n) != s}

  def holds(self) -> Listing:
    """What the copy has."""
    return listing(self._root)

  def read(self, names: Iterable[str]) -> Dict[str, bytes]:
    """Contents of its files."""
    return read(self._root, names)

  def receive(
    self, before: Listing, contents: Dict[str, bytes], after: Listing
  ) -> None:
    """Becomes what the run was.

    A checkpoint counts if it was there before and after its files were read:
    then all that it names was there, too.

    Args:
      before: what was there before files were read.
      contents: those that `wanted` named, as far as they were there.
      after: what was there then.
    """
    steady = {_unit(n) for n in before} & {_unit(n) for n in after}
    units: Dict[str, Dict[str, bytes]] = {}
    for name, content in contents.items():
      unit = _unit(name)
      if not unit:
        write(self._root, {name: content})
      elif unit in steady:
        units.setdefault(unit, {})[name] = content
    for unit, files in units.items():
      self._put(unit, files)
    arrived = {n for n in contents if not _unit(n) or _unit(n) in units}
    known = {n: s for n, s in self._known.items() if n in before}
    self._known = {**known, **{n: before[n] for n in arrived}}
    self._remove({*before, *after})

  def _put(self, unit: str, files: Dict[str, bytes]) -> None:
    """A directory with all of its files, by one rename."""
    final = self._root / _safe(unit)
    temporary = final.with_name(f"{_UNFINISHED[0]}{final.name}")
    whole_files.remove(temporary)
    temporary.mkdir(parents=True)
    if final.exists():  # what has not changed was not fetched
      shutil.copytree(final, temporary, dirs_exist_ok=True)
    write(temporary, {n[len(unit) + 1 :]: c for n, c in files.items()})
    if final.exists():
      whole_files.exchange(temporary, final)
      whole_files.remove(temporary)
    else:
      os.rename(temporary, final)
    whole_files.sync_directory(final.parent)

  def _remove(self, there: Set[str]) -> None:
    """Removes what the run has removed: checkpoints first, then their data."""
    units = {_unit(name) for name in there}
    gone = [name for name in listing(self._root) if name not in there]
    for unit in {_unit(name) for name in gone} - units - {""}:
      whole_files.remove(self._root / unit)
    for name in gone:
      (self._root / name).unlink(missing_ok=True)


def _unit(name: str) -> str:
  """The directory that appears as one; "" for a file by itself."""
  first, *rest = pathlib.PurePosixPath(name).parts
  return f"{first}/{rest[0]}" if first in _WHOLE and len(rest) > 1 else ""


def _safe(name: str) -> pathlib.PurePosixPath:
  """A path that stays below the directory it is put in."""
  path = pathlib.PurePosixPath(name)
  if path.is_absolute() or ".." in path.parts:
    raise errors.UserError(f"a run has no file {name!r}; it is not fetched")
  return path
