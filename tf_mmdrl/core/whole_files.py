"""Files of arrays that are complete, or absent, or known to be damaged.

A file is a JSON header and zlib streams; reading one runs no code from it.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import pathlib
import shutil
import struct
import zlib
from typing import Any, Dict, Iterator, List

import numpy as np

from tf_mmdrl.core.errors import UserError

TEMPORARY = ".tmp"

_MAGIC = b"mmdrl-arrays-1\n"
_LENGTH = struct.Struct("<Q")
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
# Level 1 shrinks Atari frames 30 to 70 times; more levels give little more.
_LEVEL = 1


class DamagedFileError(UserError):
  """A saved file is missing, cut short or changed; the message names it."""


def encode(tables: Dict[str, np.ndarray]) -> bytes:
  """Arrays as compressed bytes."""
  header, streams = [], []
  for name, table in tables.items():
    contiguous = np.ascontiguousarray(table).reshape([-1]).view(np.uint8)
    streams.append(zlib.compress(contiguous.data, _LEVEL))
    header.append(
      {
        "name": name,
        "dtype": table.dtype.str,
        "shape": list(table.shape),
        "length": len(streams[-1]),
      }
    )
  text = json.dumps(header).encode()
  return b"".join([_MAGIC, _LENGTH.pack(len(text)), text, *streams])


def decode(data: bytes) -> Dict[str, np.ndarray]:
  """The arrays that `encode` was given, read-only."""
  start = len(_MAGIC) + _LENGTH.size
  (length,) = _LENGTH.unpack(data[len(_MAGIC) : start])
  header = json.loads(data[start : start + length])
  position = start + length
  tables = {}
  for entry in header:
    stream = data[position : position + entry["length"]]
    position += entry["length"]
    values = np.frombuffer(zlib.decompress(stream), np.dtype(entry["dtype"]))
    tables[entry["name"]] = values.reshape(entry["shape"])
  return tables


def digest(data: bytes) -> str:
  """The SHA-256 of bytes, in hexadecimal."""
  return hashlib.sha256(data).hexdigest()


def write(path: pathlib.Path, data: bytes) -> None:
  """Writes a file so that after any crash it is complete or absent."""
  temporary = path.with_name(path.name + TEMPORARY)
  try:
    # Made anew: a link of that name would be followed to anywhere.
    temporary.unlink(missing_ok=True)
    with open(temporary, "xb") as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, path)
  except OSError:  # a full disk above all: do not keep it full
    temporary.unlink(missing_ok=True)
    raise
  sync_directory(path.parent)


@contextlib.contextmanager
def made(directory: pathlib.Path) -> Iterator[None]:
  """While entered a directory is there, with its parents.

  Those that were not there go again if the block fails, unless they hold
  something.
  """
  new: List[pathlib.Path] = []
  for path in (directory, *directory.parents):
    if path.exists():
      break
    new.append(path)
  try:
    directory.mkdir(parents=True, exist_ok=True)
    yield
  except BaseException:
    with contextlib.suppress(OSError):
      for path in new:
        path.rmdir()
    raise


def write_all(directory: pathlib.Path, contents: Dict[str, bytes]) -> None:
  """Writes files, all of them or none: each is there before any has its name.

  Args:
    directory: an existing one.
    contents: the contents of files by name, with the folders in which they are
      to lie.
  """
  temporary = {
    directory / f"{name}{TEMPORARY}": directory / name for name in contents
  }
  with contextlib.ExitStack() as stack:
    for folder in {path.parent: None for path in temporary}:
      stack.enter_context(made(folder))
    for path, content in zip(temporary, contents.values()):
      stack.callback(path.unlink, missing_ok=True)
      path.unlink(missing_ok=True)  # it may be a link
      path.write_bytes(content)
    for final in temporary.values():
      if final.is_dir():  # it would be found out half-way
        raise IsADirectoryError(errno.EISDIR, "is a directory", str(final))
    for path, final in temporary.items():
      os.replace(path, final)


def exchange(one: pathlib.Path, other: pathlib.Path) -> None:
  """Swaps two directories; in one step where the system can (Linux).

  Elsewhere the second is first put aside, under the first one's name and
  `-old`, where the name of neither is ever half made.
  """
  rename = getattr(ctypes.CDLL(None), "renameat2", None)
  names = (os.fsencode(one), os.fsencode(other))
  if rename and not rename(_HERE, names[0], _HERE, names[1], _EXCHANGE):
    return
  aside = one.with_name(f"{one.name}-old")
  os.rename(other, aside)
  os.rename(one, other)


def remove(path: pathlib.Path) -> None:
  """Removes what is there as far as it can: a directory with all, or a link."""
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path, ignore_errors=True)
  else:
    path.unlink(missing_ok=True)


def sync_directory(directory: pathlib.Path) -> None:
  """Makes new names in a directory, and removed ones, outlast a power cut."""
  descriptor = os.open(directory, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def read(path: pathlib.Path, sha256: str) -> bytes:
  """Reads a file and raises `DamagedFileError` unless it is as written."""
  try:
    data = path.read_bytes()
  except OSError as error:
    raise DamagedFileError(
      f"saved file {path} cannot be read ({error.strerror}); go back to an"
      " older checkpoint"
    ) from error
  if digest(data) != sha256:
    raise DamagedFileError(
      f"saved file {path} is damaged: its checksum is not the one written;"
      " go back to an older checkpoint"
    )
  return data


def write_json(path: pathlib.Path, content: Dict[str, Any]) -> None:
  """Writes JSON that carries its own checksum."""
  text = json.dumps(content, sort_keys=True)
  line = {"sha256": digest(text.encode()), "content": content}
  write(path, json.dumps(line, sort_keys=True).encode())


def read_json(path: pathlib.Path) -> Dict[str, Any]:
  """What `write_json` wrote; `DamagedFileError` if it is not that any more."""
  try:
    line = json.loads(path.read_bytes())
    text = json.dumps(line["content"], sort_keys=True)
    good = digest(text.encode()) == line["sha256"]
    if good and isinstance(line["content"], dict):
      return line["content"]
  except OSError as error:
    raise DamagedFileError(
      f"saved file {path} cannot be read ({error.strerror}); go back to an"
      " older checkpoint"
    ) from error
  except (ValueError, KeyError, TypeError, RecursionError):
    pass  # not JSON any more, or not ours: the same as a wrong checksum
  raise DamagedFileError(
    f"saved file {path} is damaged: its checksum is not the one written;"
    " go back to an older checkpoint"
  )
