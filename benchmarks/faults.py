"""Attacks runs and server: is anything lost, silent, or a traceback?

  python benchmarks/faults.py [--quick] [--only kills,disk] [--kills 200]

- kills: SIGKILL while runs play, learn, make checkpoints and export.
- damages: every kind of file of a run truncated, emptied, changed by a bit and
  removed, then `inspect`, `report`, `evaluate` and `train`.
- disk: a disk that is full from a given write on, then with room again.
- sigterm: SIGTERM, after which a run must end with a checkpoint.
- environments: those that raise, hang, never end, or return what they may not.
- server: what server_faults.py does to `mmdrl serve`.
- actors, with `--actors 2 --kills 20` and by itself: runs on Ray whose actors,
  raylet and learner are killed (killed_actors.py).

It prints a table and ends with 1 unless all of its counts are 0. With `--keep
FILE` a part that has ended is not done again when the command is cut and
repeated at the same commit.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import attacked  # noqa: F401  (first: sets what TensorFlow reads)
import cut_runs
import damaged_runs
import full_disks
import killed_actors
import served
import strange_environments

PARTS = ("kills", "damages", "disk", "sigterm", "environments", "server")
# What changes a part; it is done again if one of these is another.
_CHOICES = ("quick", "kills", "damages", "minutes", "seed", "actors")


def rows(part, args):
  """The table's lines of a part."""
  tenth = 10 if args.quick else 1
  if part == "kills":
    number = max(1, args.kills // tenth)
    return cut_runs.killed(number, args.seed, args.minutes)
  if part == "damages":
    return damaged_runs.rows(max(1, args.damages // tenth))
  if part == "disk":
    return full_disks.rows(2 if args.quick else 10)
  if part == "sigterm":
    return cut_runs.stopped(20 // tenth, args.seed, args.minutes)
  if part == "environments":
    return strange_environments.rows(every=5 if args.quick else 1)
  if part == "actors":
    number = max(1, args.kills // tenth)
    return killed_actors.rows(number, args.actors, args.seed, args.minutes)
  import server_faults

  return server_faults.rows(1000 // tenth, 30 / tenth)


def _parts(text):
  chosen = text.split(",")
  for name in chosen:
    if name not in PARTS:
      raise argparse.ArgumentTypeError(
        f"{name!r} is no part; they are {', '.join(PARTS)}"
      )
  return [name for name in PARTS if name in chosen]


def _commit():
  command = ["git", "describe", "--always", "--dirty"]
  place = os.path.dirname(os.path.abspath(__file__))
  commit = subprocess.run(command, capture_output=True, text=True, cwd=place)
  return commit.stdout.strip() or "unknown"


class _Parts:
  """Does parts, each in a process of its own, and keeps what has ended.

  The processes are forked from this one, which computes nothing itself.
  """

  def __init__(self, args, commit):
    self._args = args
    chosen = {name: getattr(args, name) for name in _CHOICES}
    self._header = {**chosen, "commit": commit}
    self._known = {}
    if args.keep and args.keep.exists():
      content = json.loads(args.keep.read_text())
      if content["header"] == self._header:
        self._known = content["parts"]

  def run(self, names):
    """Does those that have not ended; whether all have now."""
    missing = [name for name in names if name not in self._known]
    with tempfile.TemporaryDirectory() as folder:
      running = {}
      while missing or running:
        while missing and len(running) < self._args.jobs:
          name = missing.pop(0)
          running[self._begin(name, pathlib.Path(folder, name))] = name
        pid, _ = os.wait()
        self._take(running.pop(pid), pathlib.Path(folder))
    return all(name in self._known for name in names)

  def _begin(self, name, result):
    """Forks the process of a part."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
      code, start = 1, time.monotonic()
      try:
        found = rows(name, self._args)
        load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
        passed = f"{time.monotonic() - start:,.0f} s, load {load} at its end"
        result.write_text(json.dumps({"rows": found, "passed": passed}))
        code = 0
      except BaseException:
        traceback.print_exc()
      finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return pid

  def _take(self, name, folder):
    """Keeps what a part has found; nothing if it failed itself."""
    result = folder / name
    if result.exists():
      self._known[name] = json.loads(result.read_text())
      if self._args.keep:
        content = {"header": self._header, "parts": self._known}
        self._args.keep.write_text(json.dumps(content))

  def rows(self, names):
    """The table's lines of parts that have ended."""
    known = [self._known[name]["rows"] for name in names if name in self._known]
    return [served.Row(*row) for found in known for row in found]

  def show(self):
    """Prints how long each part took."""
    for name, content in self._known.items():
      print(f"{name}: {content['passed']}")


def main():
  """Prints the table; 1 if anything was lost, silent or a traceback."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--only",
    type=_parts,
    default=list(PARTS),
    metavar="PART,PART",
    help=f"the parts to run, of {', '.join(PARTS)}",
  )
  parser.add_argument("--quick", action="store_true", help="do a tenth of it")
  parser.add_argument("--kills", type=int, default=200, help="kills in all")
  parser.add_argument(
    "--damages", type=int, default=1000, help="damages at most; there are 140"
  )
  parser.add_argument(
    "--minutes",
    type=float,
    default=600.0,
    help="after which kills, and sigterm, begin no further run",
  )
  parser.add_argument("--seed", type=int, default=0, help="of the moments")
  parser.add_argument(
    "--keep", type=pathlib.Path, help="a file for the parts that have ended"
  )
  parser.add_argument(
    "--jobs", type=int, default=1, help="parts done at a time"
  )
  parser.add_argument(
    "--actors", type=int, default=0, help="attack runs with so many on Ray"
  )
  args = parser.parse_args()
  if args.actors:
    args.only = ["actors"]
  commit = _commit()
  parts = _Parts(args, commit)
  complete = parts.run(args.only)
  found = parts.rows(args.only)
  print(f"commit {commit}, {os.cpu_count()} cores, {args.jobs} at a time")
  parts.show()
  served.show(found)
  wrong = any(row.lost or row.silent or row.tracebacks for row in found)
  return int(wrong or not complete)


if __name__ == "__main__":
  sys.exit(main())
