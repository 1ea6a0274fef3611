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
FILE` the command may be cut, and repeated at the same commit: what was done is
not done again. With `--minutes` it cuts itself, and ends with 75 if there is
more to do.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Callable, Dict, List, NamedTuple

import attacked  # noqa: F401  (first: sets what TensorFlow reads)
import cut_runs
import damaged_runs
import full_disks
import killed_actors
import pieces
import served
import strange_environments

_UNFINISHED = 75
# What changes a part; all is done again if one of these is another.
_CHOICES = ("quick", "kills", "damages", "seed", "actors")


class Part(NamedTuple):
  """A kind of attack.

  Attributes:
    attack: (arguments, what is done) -> does the rest, piece by piece.
    rows: what is done -> lines of the table.
  """

  attack: Callable[[argparse.Namespace, pieces.Known], pieces.Found]
  rows: Callable[[pieces.Known], List[served.Row]]


def _tenth(args: argparse.Namespace, number: int) -> int:
  return max(1, number // 10) if args.quick else number


def _server(args, known):
  import server_faults  # it computes when it is imported

  return server_faults.attack(_tenth(args, 1000), _tenth(args, 30), known)


def _actors(args, known):
  if "all" not in known:
    number = _tenth(args, args.kills)
    rows = killed_actors.rows(number, args.actors, args.seed, args.minutes)
    yield "all", rows


def _as_rows(known):
  return [served.Row(*row) for found in known.values() for row in found]


PARTS: Dict[str, Part] = {
  "environments": Part(
    lambda args, known: strange_environments.attack(
      5 if args.quick else 1, known
    ),
    lambda known: [strange_environments.row(known)],
  ),
  "disk": Part(
    lambda args, known: full_disks.attack(2 if args.quick else 10, known),
    lambda known: [full_disks.row(known)],
  ),
  "server": Part(_server, _as_rows),
  "sigterm": Part(
    lambda args, known: cut_runs.stopped(_tenth(args, 20), args.seed, known),
    lambda known: [cut_runs.row(known, was_killed=False)],
  ),
  "damages": Part(
    lambda args, known: damaged_runs.attack(_tenth(args, args.damages), known),
    lambda known: [damaged_runs.row(known)],
  ),
  "kills": Part(
    lambda args, known: cut_runs.killed(
      _tenth(args, args.kills), args.seed, known
    ),
    lambda known: [cut_runs.row(known, was_killed=True)],
  ),
}
_ACTORS = Part(_actors, _as_rows)


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


class _Attack:
  """Does parts, each in a process of its own, and keeps what has ended.

  The processes are forked from this one, which computes nothing itself.
  """

  def __init__(self, args, journal: pieces.Journal):
    self._args = args
    self._journal = journal
    self._end = time.monotonic() + 60 * args.minutes

  def run(self, parts: Dict[str, Part]) -> int:
    """0 if all of them came to their end, _UNFINISHED if some were cut."""
    waiting, running, codes = list(parts), set(), {0}
    while waiting or running:
      while waiting and len(running) < self._args.jobs:
        name = waiting.pop(0)
        running.add(self._begin(name, parts[name]))
      pid, status = os.wait()
      running.discard(pid)
      codes.add(os.waitstatus_to_exitcode(status))
    failed = codes - {0, _UNFINISHED}
    return 1 if failed else max(codes)

  def _begin(self, name: str, part: Part) -> int:
    """Forks the process of a part."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
      code = 1
      try:
        known = self._journal.known(name)
        found = part.attack(self._args, known)
        whole = pieces.work(self._journal, name, found, known, self._end)
        code = 0 if whole else _UNFINISHED
      except BaseException:
        traceback.print_exc()
      finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return pid


def _show(parts: Dict[str, Part], journal: pieces.Journal) -> int:
  """Prints the table; how much was wrong."""
  found: List[served.Row] = []
  for name, part in parts.items():
    if known := journal.known(name):
      found += part.rows(known)
      measured = journal.measured(name)
      minutes = sum(one["seconds"] for one in measured) / 60
      loads = [one["load"] for one in measured]
      print(
        f"{name}: {minutes:.1f} min of CPU, load {min(loads):.0f} to"
        f" {max(loads):.0f}"
      )
  served.show(found)
  return sum(row.lost + row.silent + row.tracebacks for row in found)


def _arguments() -> argparse.Namespace:
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
    help="after which nothing more is begun",
  )
  parser.add_argument("--seed", type=int, default=0, help="of the moments")
  parser.add_argument(
    "--keep", type=pathlib.Path, help="a file for what has been done"
  )
  parser.add_argument(
    "--jobs", type=int, default=1, help="parts done at a time"
  )
  parser.add_argument(
    "--actors", type=int, default=0, help="attack runs with so many on Ray"
  )
  return parser.parse_args()


def main() -> int:
  """Prints the table; 1 if anything was lost, silent or a traceback."""
  args = _arguments()
  parts = {name: PARTS[name] for name in args.only}
  if args.actors:
    parts = {"actors": _ACTORS}
  commit = _commit()
  header = {name: getattr(args, name) for name in _CHOICES}
  with tempfile.TemporaryDirectory() as folder:
    path = args.keep or pathlib.Path(folder, "done")
    journal = pieces.Journal(path, {**header, "commit": commit})
    code = _Attack(args, journal).run(parts)
    print(f"commit {commit}, {os.cpu_count()} cores, {args.jobs} at a time")
    wrong = _show(parts, journal)
  return 1 if wrong else code


if __name__ == "__main__":
  sys.exit(main())
