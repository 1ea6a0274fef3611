"""Runs on Ray whose actors, raylet and learner are killed at random moments.

`faults.py --actors 2 --kills 20` runs this. Each configuration is trained once
with its actors as threads, without a cut. Then the same run is trained with
actors on Ray, and SIGKILL hits one of its actors (six times in ten), its raylet
or its learner. A command that ended is started again. The fingerprint at the
end must be that of the threads.
"""

import os
import pathlib
import random
import shutil
import signal
import tempfile
import time
from typing import Any, Dict, List, Optional

import attacked
import processes
from served import Row

CONFIGURATIONS: Dict[str, Dict[str, Any]] = {
  "MinAtar": dict(env="MinAtar/Breakout"),
  "MinAtar, prioritised": dict(
    env="MinAtar/Breakout", replay__prioritized=True
  ),
  "Pong": dict(env="Pong", environment__rebuild_period=64),
  "Pong, prioritised": dict(
    env="Pong", environment__rebuild_period=64, replay__prioritized=True
  ),
}
_TARGETS = ["actor"] * 6 + ["raylet"] * 2 + ["learner"] * 2
_LONGEST = 12.0  # seconds between two kills, at most


def _title(process: int) -> str:
  try:
    words = pathlib.Path("/proc", str(process), "cmdline").read_bytes()
  except OSError:
    return ""
  return words.split(b"\0")[0].decode(errors="replace")


def find(learner: int, kind: str, chance: random.Random) -> Optional[int]:
  """A process of a kind that serves a learner, if there is one now."""
  if kind == "learner":
    return learner
  mark = "ray::SlotPlayer" if kind == "actor" else "/raylet"
  there = [p for p in processes.descendants(learner) if mark in _title(p)]
  return chance.choice(there) if there else None


def rows(number: int, actors: int, seed: int, minutes: float) -> List[Row]:
  """Kills that many times, over all configurations.

  Args:
    number: of kills.
    actors: of each run.
    seed: of the moments.
    minutes: after which no run is begun.

  Returns:
    A line of the table for each configuration.
  """
  chance, end = random.Random(seed), time.monotonic() + 60 * minutes
  names = list(CONFIGURATIONS)
  share = max(1, number // len(names))
  found = []
  for name in names:
    if time.monotonic() < end:
      with tempfile.TemporaryDirectory() as folder:
        found.append(_attack(name, share, actors, chance, pathlib.Path(folder)))
  return found


def _attack(
  name: str,
  number: int,
  actors: int,
  chance: random.Random,
  folder: pathlib.Path,
) -> Row:
  settings = dict(CONFIGURATIONS[name], environment__num_envs=2 * actors)
  log = folder / "log"
  words = attacked.train(folder / "threads", **settings, system__actors=actors)
  if attacked.run(words, log).code != 0:
    raise RuntimeError(f"{name} failed without a kill")
  wanted = attacked.wanted_fingerprint(folder / "threads", log)
  words = [*attacked.train(folder / "ray", **settings), "--actors", str(actors)]
  hits: List[str] = []
  starts = tracebacks = lost = 0
  while True:
    command = attacked.Command(words, log)
    starts += 1
    while command.running() and len(hits) < number:
      pause = time.monotonic() + chance.uniform(0, _LONGEST)
      command.until(lambda until=pause: time.monotonic() > until, 60)
      target = find(command.pid, kind := chance.choice(_TARGETS), chance)
      if target is not None and command.running():
        os.kill(target, signal.SIGKILL)
        hits.append(kind)
        attacked.progress(name, len(hits) - 1, number, kind)
    done = command.end(3600)
    tracebacks += done.traceback
    if done.code == 0 and len(hits) >= number:
      break
    if done.code == 0:  # it was faster than the kills
      shutil.rmtree(folder / "ray")
    if starts > 3 * number + 3:
      lost += 1
      attacked.complain(f"{name} does not come to its end", done)
      break
  silent = int(attacked.fingerprint(folder / "ray", log) != wanted)
  what = ", ".join(f"{kind} {hits.count(kind)}" for kind in sorted(set(hits)))
  note = f"killed: {what}; started {starts} times"
  return Row(
    f"{name}, {actors} actors", len(hits), lost, silent, tracebacks, note
  )
