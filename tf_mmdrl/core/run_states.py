"""Where a run stands, read from its files; needs no TensorFlow."""

import math
import os
import pathlib
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from tf_mmdrl.core import errors, run_files, run_records

RUNNING, FINISHED, STOPPED = "running", "finished", "stopped"
_LOCKS = pathlib.Path("/proc/locks")


class State(NamedTuple):
  """Where a run stands.

  Attributes:
    identity: what it trains.
    activity: RUNNING, FINISHED or STOPPED.
    step: the newest that is known.
    steps: that it is to have.
    score: of the newest evaluation; None before the first.
    best: the highest of all evaluations.
    best_step: where that was reached.
    counted: episodes and updates so far.
    changed: when it last wrote, in seconds since the epoch.
  """

  identity: run_files.Identity
  activity: str
  step: int
  steps: int
  score: Optional[float]
  best: Optional[float]
  best_step: Optional[int]
  counted: Dict[str, int]
  changed: float


def read(files: run_files.RunFiles) -> State:
  """Where the run in a directory stands."""
  settings, rows = files.settings(), files.rows()
  scores: Dict[int, float] = {}  # by step
  for row in rows:
    found = row.get("evaluation_score")
    if found is not None:
      scores[int(row["step"] or 0)] = found
  finite = [at for at, score in scores.items() if math.isfinite(score)]
  best_step = max(finite, key=scores.__getitem__, default=None)
  best = None if best_step is None else scores[best_step]
  saved = run_records.checkpoints(files.checkpoints)
  logged = run_files.last(rows, "step") if rows else None
  step = max(int(logged or 0), max(saved, default=0))
  steps = int(_number(files, settings, "schedule.steps", 0))
  enough = _number(files, settings, "evaluation.enough", sys.float_info.max)
  is_over = step >= steps or any(
    run_files.is_enough(score, enough) for score in scores.values()
  )
  activity = FINISHED if is_over else STOPPED
  counted: Dict[str, int] = {}
  if rows:
    for name in ("episodes", "updates"):
      count = rows[-1].get(name) or 0
      counted[name] = int(count) if math.isfinite(count) else 0
  return State(
    files.identity(),
    RUNNING if is_written(files.path) else activity,
    step,
    steps,
    list(scores.values())[-1] if scores else None,
    best,
    best_step,
    counted,
    max(
      path.stat().st_mtime
      for path in (files.config_file, files.metrics, files.checkpoints)
      if path.exists()
    ),
  )


def _number(
  files: run_files.RunFiles, settings: Dict[str, Any], name: str, default: float
) -> float:
  value = settings.get(name, default)
  if not isinstance(value, (int, float)) or not math.isfinite(value):
    raise errors.UserError(
      f"the run in {str(files.path)!r} has {name} {value!r}, which is no"
      " number; it was changed by hand"
    )
  return value


def is_written(path: pathlib.Path) -> bool:
  """Whether a process writes to a run now.

  The lock itself is not touched: who tried it might hold it in the moment in
  which training wants it.

  Args:
    path: of the run.
  """
  lock = path / "lock"
  try:
    found = lock.stat()
    if _LOCKS.exists():
      # "1: FLOCK  ADVISORY  WRITE 4711 fd:00:31337 0 EOF"
      words = [line.split() for line in _LOCKS.read_text().splitlines()]
      device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
      place = f"{device}:{found.st_ino}"
      return any("FLOCK" in line and place in line for line in words)
    os.kill(int(lock.read_text()), 0)
    return True
  except PermissionError:  # another user's process
    return True
  except (OSError, ValueError):
    return False


def describe_unit(rows: Sequence[run_files.Row]) -> List[str]:
  """Lines that tell the unit of return over a run and what the loss saw."""
  changes: List[str] = []
  now = None
  for row in rows:
    if row.get("unit") not in (None, now):
      now = row["unit"]
      changes.append(f"{now:g} at step {row['step']:,.0f}")
  if now is None:
    return []
  lines = [f"unit of return: {now:g} natural rewards"]
  if len(changes) > 1:
    lines.append(f"  over time: {', '.join(changes)}")
  known = [row["beyond_reach"] for row in rows if row.get("beyond_reach")]
  largest = max((share for share in known if share is not None), default=0.0)
  last_share = rows[-1].get("beyond_reach") or 0.0
  lines.append(
    f"beyond the loss's reach: {last_share:.0%} of the targets, at most"
    f" {largest:.0%}"
  )
  return lines
