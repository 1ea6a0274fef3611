"""Learning curves from elsewhere: a CSV with one row per seed."""

import csv
import math
import pathlib
from typing import Dict, List

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.report import results


def read(path: pathlib.Path, label: str, period: int) -> List[results.Run]:
  """Reads learning curves from a CSV file.

  Args:
    path: the path of the CSV; each row is a game and its scores, evaluation by
      evaluation. The rows of a game are its seeds. A first row that begins with
      `game` is a heading.
    label: the agent's name.
    period: agent steps between two scores.

  Returns:
    A run for each row; a game's seeds are counted from 0.
  """
  runs: List[results.Run] = []
  seeds: Dict[str, int] = {}
  for number, cells in _lines(path):
    if not cells or (number == 1 and cells[0].strip().lower() == "game"):
      continue
    where = f"{str(path)!r} line {number}"
    game = results.shown_game(cells[0].strip())
    if not game:
      raise errors.UserError(f"{where} has no game; write game,score,score,...")
    scores = np.array([_number(cell, where) for cell in _trimmed(cells)])
    if not scores.size:
      raise errors.UserError(
        f"{where} has a game and no scores; write game,score,score,..."
      )
    seed = seeds.setdefault(game, 0)
    seeds[game] += 1
    steps = period * np.arange(1, len(scores) + 1)
    runs.append(results.Run(label, game, seed, steps, scores, None, {}, where))
  if not runs:
    raise errors.UserError(
      f"{str(path)!r} holds no curves; a row is game,score,score,..."
    )
  return runs


def _lines(path: pathlib.Path) -> List[tuple]:
  """Line numbers and cells."""
  try:
    with path.open(newline="") as file:
      reader = csv.reader(file, strict=True)
      return [(reader.line_num, cells) for cells in reader]
  except OSError as error:
    raise errors.UserError(
      f"cannot read {str(path)!r}: {error.strerror}; pass a CSV of curves"
    ) from None
  except csv.Error as error:
    raise errors.UserError(
      f"{str(path)!r} line {reader.line_num} is not CSV: {error}"
    ) from None
  except UnicodeDecodeError:
    raise errors.UserError(
      f"{str(path)!r} is not text after line {reader.line_num}; pass a CSV of"
      " curves"
    ) from None


def _trimmed(cells: List[str]) -> List[str]:
  """The scores without the empty cells that pad a short row."""
  end = len(cells)
  while end > 1 and not cells[end - 1].strip():
    end -= 1
  return cells[1:end]


def _number(cell: str, where: str) -> float:
  try:
    number = float(cell)
  except ValueError:
    number = math.nan
  if not math.isfinite(number):
    raise errors.UserError(f"{where}: a score must be a number, got {cell!r}")
  return number
