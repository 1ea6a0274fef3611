"""Work in pieces that are kept, so that a command can be cut and go on."""

import fcntl
import json
import os
import pathlib
import resource
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

# Name of a piece -> what came of it, as JSON holds it.
Known = Dict[str, Any]
Found = Iterator[Tuple[str, Any]]


class Journal:
  """A file with a line for each piece that is done.

  Several processes may add to it. What was done of other work (another commit,
  say) is forgotten, and so is a last line that was cut.
  """

  def __init__(self, path: pathlib.Path, header: Dict[str, Any]):
    """Begins the file anew unless it is of the same work.

    Args:
      path: the file; its directory is there.
      header: JSON values that tell what the work is.
    """
    self._path = path
    first = self._lines()[:1]
    if first != [{"header": header}]:
      self._path.write_text(json.dumps({"header": header}) + "\n")
    elif not self._path.read_bytes().endswith(b"\n"):
      with self._path.open("ab") as file:
        file.write(b"\n")

  def _lines(self) -> List[Any]:
    if not self._path.exists():
      return []
    found = []
    for line in self._path.read_text().splitlines():
      try:
        found.append(json.loads(line))
      except ValueError:
        continue  # it was cut
    return found

  def add(self, part: str, name: str, result: Any, **measured: float) -> None:
    """Adds a piece of a part, and what was measured besides."""
    line = {"part": part, "name": name, "result": result, "measured": measured}
    with self._path.open("a") as file:
      fcntl.flock(file, fcntl.LOCK_EX)
      file.write(json.dumps(line) + "\n")

  def known(self, part: str) -> Known:
    """What is done of a part."""
    return {
      line["name"]: line["result"]
      for line in self._lines()[1:]
      if line["part"] == part
    }

  def measured(self, part: str) -> List[Dict[str, float]]:
    """What was measured of each of its pieces."""
    lines = self._lines()[1:]
    return [line["measured"] for line in lines if line["part"] == part]


def work(
  journal: Journal, part: str, found: Found, known: Known, end: float
) -> bool:
  """Does a part piece by piece, and keeps each; whether it came to its end.

  Args:
    journal: where they are kept.
    part: its name.
    found: does what is not in `known`.
    known: what is done; filled, for `found` to look at.
    end: the time of `time.monotonic` after which no piece is begun.
  """
  before = _seconds()
  while time.monotonic() < end:
    done: Optional[Tuple[str, Any]] = next(found, None)
    if done is None:
      return True
    name, result = done
    result = json.loads(json.dumps(result))
    load, now = os.getloadavg()[0], _seconds()
    journal.add(part, name, result, seconds=now - before, load=load)
    known[name] = result
    before = now
  found.close()
  return False


def _seconds() -> float:
  """The CPU time of this process and of those that it has waited for."""
  kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
  used = [resource.getrusage(kind) for kind in kinds]
  return sum(one.ru_utime + one.ru_stime for one in used)
