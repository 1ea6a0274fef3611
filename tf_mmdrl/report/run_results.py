"""The evaluations of runs, for reports; needs no TensorFlow.

Of a run's settings only the game, the agent and the seed must be there, so that
runs of every version are reported.
"""

import re
from typing import List, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.core import errors, run_files, run_records
from tf_mmdrl.report import joint_calibration
from tf_mmdrl.report.results import Run, shown_game

_PART = re.compile(r"evaluation_score_\d+$")


class Found(NamedTuple):
  """What was read.

  Attributes:
    runs: the runs that have at least one evaluation.
    without_evaluations: the directories of runs that have none yet.
  """

  runs: List[Run]
  without_evaluations: List[str]


def read(paths: Sequence[str]) -> Found:
  """Reads the evaluations of runs.

  Args:
    paths: directories of runs, or directories that hold such.

  Returns:
    The runs; it is an error if none has an evaluation.
  """
  runs, without = [], []
  for files in run_files.find(paths):
    run = _read(files)
    if run.scores.size:
      runs.append(run)
    else:
      without.append(str(files.path))
  if not runs:
    raise errors.UserError(
      f"no run has an evaluation yet ({', '.join(without)}); wait for the"
      " first, which comes after evaluation.period steps"
    )
  return Found(runs, without)


def _read(files: run_files.RunFiles) -> Run:
  known = files.identity()
  run_records.check_config(files)
  run_records.check_metrics(files)
  rows = [r for r in files.rows() if r.get("evaluation_score") is not None]
  try:
    return Run(
      agent=known.agent,
      game=shown_game(known.environment),
      seed=known.seed,
      steps=_column(rows, "step"),
      scores=_column(rows, "evaluation_score"),
      episodes=_column(rows, "evaluation_episodes"),
      settings=files.settings(),
      origin=str(files.path),
      vectors=_vectors(rows),
      joint=joint_calibration.read(files),
    )
  except KeyError as error:
    raise errors.UserError(
      f"{str(files.metrics)!r} has an evaluation without its {error.args[0]};"
      " it was changed by hand"
    ) from None


def _vectors(rows: Sequence[run_files.Row]) -> Optional[np.ndarray]:
  """[E, D] the parts of scores; None if scores are numbers."""
  names = [name for name in (rows[0] if rows else ()) if _PART.match(name)]
  if not names:
    return None
  return np.stack([_column(rows, name) for name in names], axis=1)


def _column(rows: Sequence[run_files.Row], name: str) -> np.ndarray:
  """[E] the values of a column, all of which must be there."""
  values = [row.get(name) for row in rows]
  if None in values:
    raise KeyError(name)
  column = np.array(values, np.float64)
  if not np.isfinite(column).all():
    raise KeyError(f"{name} as a finite number")
  return column
