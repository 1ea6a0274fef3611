"""What a process has started, and the CPU time of all of it."""

import os
import pathlib
from typing import Dict, List


def _parents() -> Dict[int, int]:
  """Process -> its parent."""
  found = {}
  for path in pathlib.Path("/proc").glob("[0-9]*"):
    try:
      text = (path / "stat").read_text()
    except OSError:
      continue
    found[int(path.name)] = int(text.rpartition(")")[2].split()[1])
  return found


def descendants(process: int) -> List[int]:
  """All processes that a process started, and that those did."""
  parents, found = _parents(), [process]
  for one in found:
    found += [child for child, parent in parents.items() if parent == one]
  return found[1:]


def cpu_time(process: int) -> float:
  """Seconds of CPU that a process and those it started have had so far."""
  ticks = 0
  for one in [process, *descendants(process)]:
    try:
      text = pathlib.Path("/proc", str(one), "stat").read_text()
    except OSError:  # it has ended
      continue
    ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))
  return ticks / os.sysconf("SC_CLK_TCK")
