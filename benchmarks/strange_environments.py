"""Runs in environments that misbehave: one line each, and nothing lost.

The environments are those of the tests, tests/misbehaving.py.
"""

import pathlib
import re
import signal
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple

import attacked
from pieces import Found, Known
from served import Row

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests"))

import misbehaving  # noqa: E402

_SECONDS = 30.0  # from SIGTERM to the end, at most


class Wanted(NamedTuple):
  """How a run must end.

  Attributes:
    code: its exit code.
    said: a pattern of a line that it prints.
  """

  code: int
  said: str


# The others are said with the step, and end the run.
_WANTED: Dict[str, Wanted] = {
  "hangs": Wanted(75, "has not answered"),
  # Finite, so it may be; it must not end the run as a score that is enough.
  "huge_reward": Wanted(0, f"^evaluation after {attacked.STEPS} steps"),
  "endless": Wanted(0, "had not ended after"),
  "endless_huge": Wanted(0, "had not ended after"),
}
_REFUSED = Wanted(2, r"at step \d+")


def _train(path: pathlib.Path, fault: str) -> List[str]:
  return attacked.train(
    path,
    env=f"misbehaving:Misbehaving_{fault}-v0",
    environment__max_episode_steps=0,
    evaluation__max_episode_steps=60,
    system__checkpoint_period=16,
    schedule__learning_starts=100_000,  # nothing is learnt, so it is quick
  )


def _play(fault: str, path: pathlib.Path, log: pathlib.Path):
  """How a run ended, and the seconds from SIGTERM on where it must be sent."""
  command = attacked.Command(_train(path, fault), log)
  seconds = 0.0
  if fault == "hangs":
    command.until(lambda: attacked.newest(path) > 100, 1200)
    _until_it_hangs(command)
    command.send(signal.SIGTERM)
    start = time.monotonic()
    done = command.end(2 * _SECONDS)
    seconds = time.monotonic() - start
  else:
    done = command.end()
  return done, seconds


def _until_it_hangs(command: attacked.Command) -> None:
  """Waits until nothing of it has wanted a CPU for some seconds."""
  looks = 0
  while command.running() and looks < 40:
    looks = looks + 1 if command.sleeps() else 0
    time.sleep(0.1)


def attack(every: int, known: Known) -> Found:
  """Plays in each, or every so many."""
  faults = sorted(misbehaving.FAULTS)[::every]
  for index, fault in enumerate(faults):
    if fault not in known:
      with tempfile.TemporaryDirectory() as folder:
        yield fault, _attack(fault, pathlib.Path(folder))
      attacked.progress("environment", index, len(faults), fault)


def _attack(fault: str, folder: pathlib.Path) -> Dict[str, Any]:
  path, log = folder / fault, folder / "log"
  done, seconds = _play(fault, path, log)
  wanted = _WANTED.get(fault, _REFUSED)
  printed = [*done.said, *done.shown.splitlines()]
  lines = [line for line in printed if re.search(wanted.said, line)]
  quiet = done.code != wanted.code or not lines
  there = attacked.fingerprint(path, log, "--import", "misbehaving")
  gone = not there or seconds > _SECONDS or attacked.newest(path) < 100
  if quiet or gone or done.traceback:
    attacked.complain(f"{fault}: newest {attacked.newest(path)}", done)
  return {
    "lost": gone,
    "silent": quiet,
    "tracebacks": done.traceback,
    "seconds": seconds,
  }


def row(known: Known) -> Row:
  """The table's line of all environments."""
  counts = [
    sum(result[name] for result in known.values())
    for name in ("lost", "silent", "tracebacks")
  ]
  slowest = max(result["seconds"] for result in known.values())
  note = f"one that hangs ended {slowest:.1f} s after SIGTERM"
  return Row(
    "environments that misbehave",
    len(known),
    *counts,
    note if slowest else "",
  )
