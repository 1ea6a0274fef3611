"""Attacks runs and server: is anything lost, silent, or a traceback?

  python benchmarks/faults.py [--quick] [--only kills,disk] [--kills 200]

- kills: SIGKILL while runs play, learn, make checkpoints and export.
- damages: every kind of file of a run truncated, emptied, changed by a bit and
  removed, then `inspect`, `report`, `evaluate` and `train`.
- disk: a disk that is full from a given write on, then with room again.
- sigterm: SIGTERM, after which a run must end with a checkpoint.
- environments: those that raise, hang, never end, or return what they may not.
- server: what server_faults.py does to `mmdrl serve`.

It prints a table and ends with 1 unless all of its counts are 0.
"""

import argparse
import os
import subprocess
import sys
import time

import attacked  # noqa: F401  (first: sets what TensorFlow reads)
import cut_runs
import damaged_runs
import full_disks
import served
import strange_environments

# In this order: the server's part computes in this process, after which it must
# not fork any more.
PARTS = ("kills", "damages", "disk", "sigterm", "environments", "server")


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
  args = parser.parse_args()
  start, commit, found = time.monotonic(), _commit(), []
  for part in args.only:
    found += rows(part, args)
  load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
  print(
    f"commit {commit}, {os.cpu_count()} cores, load {load},"
    f" {time.monotonic() - start:,.0f} s"
  )
  served.show(found)
  return int(any(row.lost or row.silent or row.tracebacks for row in found))


if __name__ == "__main__":
  sys.exit(main())
