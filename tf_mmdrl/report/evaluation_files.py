"""All evaluations of runs in one CSV: the raw data behind a report.

A report writes it as `evaluations.csv`, and `mmdrl report --results` reads it
again, so that a table can be made without the directories of its runs.
"""

import csv
import io
import math
import pathlib
from typing import Dict, List, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.report import tables
from tf_mmdrl.report.results import Run, shown_game

NAME = "evaluations.csv"
_COLUMNS = ("agent", "game", "seed", "step", "score", "episodes")


def to_csv(runs: Sequence[Run]) -> str:
  """A line for each evaluation, run after run; numbers in full precision."""
  out = io.StringIO(newline="")
  writer = csv.writer(out, lineterminator="\n")
  writer.writerow(_COLUMNS)
  for run in runs:
    for index, (step, score) in enumerate(zip(run.steps, run.scores)):
      games = "" if run.episodes is None else int(run.episodes[index])
      name = (tables.inert(run.agent), tables.inert(run.game), run.seed)
      writer.writerow([*name, int(step), float(score), games])
  return out.getvalue()


def read(path: pathlib.Path, suffix: str = "") -> List[Run]:
  """The runs of a file that `to_csv` made.

  Args:
    path: of the file.
    suffix: of the agents' names.

  Returns:
    The runs, in the file's order.
  """
  where = repr(str(path))
  found: Dict[Tuple[str, str, int], List[Tuple[int, float, float]]] = {}
  try:
    with path.open(newline="") as file:
      rows = csv.DictReader(file, strict=True)
      if tuple(rows.fieldnames or ()) != _COLUMNS:
        raise errors.UserError(
          f"{where} does not begin with {','.join(_COLUMNS)}; pass the {NAME}"
          " of a report"
        )
      for row in rows:
        key, evaluation = _parsed(row, f"{where} line {rows.line_num}")
        found.setdefault(key, []).append(evaluation)
  except OSError as error:
    raise errors.UserError(
      f"cannot read {where}: {error.strerror}; pass the {NAME} of a report"
    ) from None
  except (csv.Error, UnicodeDecodeError) as error:
    raise errors.UserError(f"{where} is not CSV: {error}") from None
  if not found:
    raise errors.UserError(f"{where} holds no evaluation")
  return [
    _run(key, np.array(evaluations), suffix, str(path))
    for key, evaluations in found.items()
  ]


def _parsed(row: dict, where: str) -> Tuple[tuple, Tuple[int, float, float]]:
  """(agent, game, seed) and (step, score, episodes) of a line."""
  try:
    key = (row["agent"], row["game"], int(row["seed"]))
    episodes = float(row["episodes"]) if row["episodes"] else math.nan
    step, score = int(row["step"]), float(row["score"])
    if key[0] and key[1] and step >= 0 and math.isfinite(score):
      return key, (step, score, episodes)
  except (TypeError, ValueError):
    pass  # the same message
  raise errors.UserError(
    f"{where}: an evaluation is {','.join(_COLUMNS)}, got"
    f" {','.join(str(row[name]) for name in _COLUMNS)!r}"
  )


def _run(
  key: Tuple[str, str, int], table: np.ndarray, suffix: str, origin: str
) -> Run:
  agent, game, seed = key
  episodes = None if np.isnan(table[:, 2]).any() else table[:, 2]
  return Run(
    agent=agent + suffix,
    game=shown_game(game),
    seed=seed,
    steps=table[:, 0],
    scores=table[:, 1],
    episodes=episodes,
    settings={},
    origin=origin,
  )
