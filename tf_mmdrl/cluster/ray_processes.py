"""Ray's processes on this machine, and a watch over those that all need."""

import contextlib
import os
import pathlib
import select
import sys
import threading
from typing import Callable, Dict, Iterator, List

from tf_mmdrl.core import exit_codes, notices

# Without these nothing goes on. Ray then ends this process without a word, or
# lets it wait for ever, which depends on what it was about to do.
_NEEDED = ("raylet", "gcs_server")


def found(place: pathlib.Path) -> List[int]:
  """Processes of Ray whose files are in a place.

  Those of containers may have a place of the same name, and are seen from here.
  """
  processes, mark = [], str(place).encode()
  mounts = os.readlink("/proc/self/ns/mnt")
  for path in pathlib.Path("/proc").glob("[0-9]*"):
    try:
      words = (path / "cmdline").read_bytes()
      mine = path.stat().st_uid == os.getuid()
      mine = mine and os.readlink(path / "ns" / "mnt") == mounts
    except OSError:
      continue
    if mine and mark in words and int(path.name) != os.getpid():
      processes.append(int(path.name))
  return processes


@contextlib.contextmanager
def watched(place: pathlib.Path, advice: str) -> Iterator[None]:
  """Ends this process with a line if one ends that it needs.

  What a run has on disk is whole at any moment, so that the same command goes
  on, as it does after kill -9.

  Args:
    place: where Ray has its files.
    advice: what to do then.
  """

  def end(name: str) -> None:
    notices.note(
      f"Ray's process {name} on this machine has ended, and nothing goes on"
      f" without it; {advice}"
    )
    with contextlib.suppress(OSError, ValueError):
      sys.stdout.flush()
    os._exit(exit_codes.STOPPED)

  names = {process: _name(process) for process in found(place)}
  needed = {p: name for p, name in names.items() if name in _NEEDED}
  if _NEEDED[0] not in needed.values():
    end(_NEEDED[0])
  with _watching(needed, end):
    yield


@contextlib.contextmanager
def _watching(
  processes: Dict[int, str], end: Callable[[str], None]
) -> Iterator[None]:
  """Calls `end` with the name of the first of these processes that ends."""
  reader, writer = os.pipe()
  files = {}
  for process, name in processes.items():
    try:
      files[os.pidfd_open(process)] = name
    except ProcessLookupError:
      end(name)
  waits = select.poll()
  for file in [reader, *files]:
    waits.register(file, select.POLLIN)

  def watch() -> None:
    ended = [file for file, _ in waits.poll() if file != reader]
    if ended:
      end(files[ended[0]])

  thread = threading.Thread(target=watch, daemon=True, name="mmdrl-ray")
  thread.start()
  try:
    yield
  finally:
    os.write(writer, b"x")
    thread.join()
    for file in [reader, writer, *files]:
      os.close(file)


def _name(process: int) -> str:
  try:
    words = pathlib.Path("/proc", str(process), "cmdline").read_bytes()
  except OSError:
    return ""
  return pathlib.Path(os.fsdecode(words.split(b"\0")[0])).name
