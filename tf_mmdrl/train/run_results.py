"""Reads what runs have measured, for reports.

Reads a run of any version and does not need TensorFlow: of the settings only
the game, the agent and the seed must be there.
"""

import csv
import json
import pathlib
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.report import Run
from tf_mmdrl.report.results import shown_game

_CONFIG = "config.json"
_METRICS = "metrics.csv"


class Found(NamedTuple):
  """What was read.

  Attributes:
    runs: with at least one evaluation each.
    unjudged: the directories of runs that have none yet.
  """

  runs: List[Run]
  unjudged: List[str]


class Identity(NamedTuple):
  """What tells a run from the others of a sweep."""

  environment: str
  agent: str
  seed: int


def identity(path: pathlib.Path) -> Identity:
  """What the run in a directory is a run of."""
  return _identity(path, _settings(path))


def read(paths: Sequence[str]) -> Found:
  """Reads runs.

  Args:
    paths: directories of runs, or directories that hold such.

  Returns:
    The runs; it is an error if none has an evaluation.
  """
  runs, unjudged = [], []
  for path in directories(paths):
    run = _read(path)
    if run.scores.size:
      runs.append(run)
    else:
      unjudged.append(str(path))
  if not runs:
    raise errors.UserError(
      f"no run has an evaluation yet ({', '.join(unjudged)}); wait for the"
      " first, which comes after evaluation.period steps"
    )
  return Found(runs, unjudged)


def directories(paths: Sequence[str]) -> List[pathlib.Path]:
  """The run directories among `paths` and below them, each once."""
  found: Dict[pathlib.Path, pathlib.Path] = {}
  for text in paths:
    path = pathlib.Path(text)
    if not path.is_dir():
      raise errors.UserError(
        f"{text!r} is not a directory; pass the directory that mmdrl train"
        " printed"
      )
    if (path / _CONFIG).is_file():
      here = [path]
    else:
      here = sorted(config.parent for config in path.rglob(_CONFIG))
    if not here:
      raise errors.UserError(
        f"{text!r} is not a run and holds none: there is no config.json; pass"
        " the directory that mmdrl train printed"
      )
    found.update({run.resolve(): run for run in here})
  return list(found.values())


def _read(path: pathlib.Path) -> Run:
  settings = _settings(path)
  rows = _rows(path / _METRICS)
  judged = [row for row in rows if row.get("evaluation_score")]
  known = _identity(path, settings)
  try:
    return Run(
      agent=known.agent,
      game=shown_game(known.environment),
      seed=known.seed,
      steps=_column(judged, "step"),
      scores=_column(judged, "evaluation_score"),
      episodes=_column(judged, "evaluation_episodes"),
      settings=settings,
      origin=str(path),
    )
  except KeyError as error:
    raise errors.UserError(
      f"{str(path / _METRICS)!r} has no column {error.args[0]!r}; it was"
      " changed by hand"
    ) from None
  except (TypeError, ValueError) as error:
    raise errors.UserError(
      f"{str(path / _METRICS)!r} cannot be read: {error}"
    ) from None


def _identity(path: pathlib.Path, settings: Dict[str, Any]) -> Identity:
  try:
    return Identity(
      str(settings["environment.name"]),
      str(settings["agent.name"]),
      int(settings["system.seed"]),
    )
  except KeyError as error:
    raise errors.UserError(
      f"the run in {str(path)!r} does not say its {error.args[0]}; it was"
      " changed by hand"
    ) from None
  except (TypeError, ValueError):
    raise errors.UserError(
      f"the run in {str(path)!r} has system.seed"
      f" {settings['system.seed']!r}, which is no whole number; it was changed"
      " by hand"
    ) from None


def _settings(path: pathlib.Path) -> Dict[str, Any]:
  """`group.field` -> value."""
  try:
    groups = json.loads((path / _CONFIG).read_text())["config"]
    return {
      f"{group}.{field}": value
      for group, fields in groups.items()
      for field, value in fields.items()
    }
  except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
    raise errors.UserError(
      f"{str(path)!r} is not a run: its config.json cannot be read"
      f" ({type(error).__name__}: {error})"
    ) from None


def _rows(path: pathlib.Path) -> List[Dict[str, str]]:
  """The rows of metrics.csv; none if training has not begun to write."""
  if not path.exists():
    return []
  try:
    return list(csv.DictReader(path.read_text().splitlines()))
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise errors.UserError(f"{str(path)!r} cannot be read: {error}") from None


def _column(rows: Sequence[Dict[str, str]], name: str) -> np.ndarray:
  return np.array([float(row[name]) for row in rows])
