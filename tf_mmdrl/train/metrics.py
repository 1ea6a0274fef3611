"""`metrics.csv`: what happened, at which step; nothing that depends on time.

Without a clock in it the file of a run that was cut and resumed equals that of
one that was not, byte for byte.
"""

import csv
import io
import math
import os
import pathlib
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from tf_mmdrl.core import run_files, whole_files
from tf_mmdrl.evaluation.evaluator import Evaluation, Worth
from tf_mmdrl.report import human_normalized

COLUMNS = (
  "step",
  "updates",
  "episodes",
  "epsilon",
  "train_score",
  "loss",
  "replay_steps",
  "evaluation_score",
  "evaluation_episodes",
  "evaluation_human_normalized",
  "unit",
  "beyond_reach",
)


class Metrics:
  """Rows of a run, in memory and on disk.

  Attributes:
    episodes: games finished.
    last_step: the step of the newest row.
    last_evaluation: the step of the newest evaluation.
    evaluations: how many there were.
    last_game: the step with which the newest game ended, or a phase in which
      none did.
    best_score: the best score of all evaluations.
    best_step: the step at which it was reached.
  """

  def __init__(
    self,
    path: pathlib.Path,
    game: str,
    dimensions: Optional[int] = None,
    worth: Optional[Worth] = None,
  ):
    """Begins with no row.

    Args:
      path: the path of the file.
      game: what is played; if human scores of it are known, evaluations are
        written in their measure too, 0 for random and 1 for human play.
      dimensions: D, if scores are vectors: each of their parts has a column.
      worth: of such scores, as one number.
    """
    self._path = path
    self._game = game
    self._dimensions = dimensions
    self._worth = worth
    self._columns: Sequence[str] = (*COLUMNS, *_vector_columns(dimensions))
    self._text = _line(self._columns)
    self._loss_sum, self._losses = 0.0, 0
    self._scores: List[Any] = []
    self.episodes = 0
    self.last_step = 0
    self.last_evaluation = 0
    self.evaluations = 0
    self.last_game = 0
    self._phase_start = 0
    self.best_score: Optional[float] = None
    self.best_step: Optional[int] = None

  @property
  def text(self) -> str:
    """The whole file."""
    return self._text

  @property
  def phase(self) -> int:
    """Steps of the games since the newest evaluation.

    From the game's end before it to that of the newest game.
    """
    return self.last_game - self._phase_start

  def end_long_phase(self, step: int, period: int) -> bool:
    """Ends a phase of twice its length within a game.

    Args:
      step: the step of the run.
      period: steps after which a phase ends with the next game.

    Returns:
      Whether it did: no game has ended since the phase was long enough.
    """
    is_long = step - self._phase_start >= 2 * period and self.phase < period
    if is_long:
      self.last_game = step  # as if one had ended here
    return is_long

  def rows(self) -> List[run_files.Row]:
    """All rows so far."""
    return run_files.parse_rows(self._text)

  def begin(self) -> None:
    """Makes the file what `text` is, whatever a crash left there."""
    whole_files.write(self._path, self._text.encode())

  def add_loss(self, loss: float) -> None:
    """Adds a round's loss to the next row's mean."""
    self._loss_sum += loss
    self._losses += 1

  def add_games(self, scores: Sequence[Any], step: int) -> None:
    """Adds games that ended, the last with `step`, to the next row's mean."""
    self._scores.extend(scores)
    self.episodes += len(scores)
    if scores:
      self.last_game = step

  def add_row(
    self,
    *,
    step: int,
    updates: int,
    epsilon: float,
    replay_steps: int,
    evaluation: Optional[Evaluation],
    unit: Any,
    beyond_reach: float,
  ) -> Dict[str, Any]:
    """Writes a row; what is unknown stays empty, and None in the result."""
    vectors, unit = evaluation and evaluation.vectors, np.asarray(unit)
    score = evaluation.mean if evaluation else None
    row = {
      "step": step,
      "updates": updates,
      "episodes": self.episodes,
      "epsilon": epsilon,
      "train_score": self._train_score(),
      "loss": self._loss_sum / self._losses if self._losses else None,
      "replay_steps": replay_steps,
      "evaluation_score": score,
      "evaluation_episodes": len(evaluation.scores) if evaluation else None,
      "evaluation_human_normalized": (
        None if score is None else human_normalized(self._game, score)
      ),
      "unit": float(np.max(unit)),
      "beyond_reach": beyond_reach,
      **self._parts("train_score", self._scores),
      **self._parts("evaluation_score", vectors),
      **self._parts("unit", unit[np.newaxis]),
    }
    line = _line(["" if row[c] is None else row[c] for c in self._columns])
    self._append(line)
    self._text += line
    self._loss_sum, self._losses = 0.0, 0
    self._scores.clear()
    self.last_step = step
    if score is not None:
      self.last_evaluation = step
      self.evaluations += 1
      self._phase_start = self.last_game
      is_best = self.best_score is None or score > self.best_score
      if is_best and math.isfinite(score):
        self.best_score, self.best_step = score, step
    return row

  def _train_score(self) -> Optional[float]:
    """The mean of the games since the row before, or what they are worth."""
    if not self._scores:
      return None
    if self._dimensions is None or self._worth is None:
      return sum(self._scores) / len(self._scores)
    return self._worth(np.array(self._scores))[1]

  def _parts(self, name: str, vectors: Any) -> Dict[str, Optional[float]]:
    """The mean of each part of some vectors, by the columns' names."""
    columns = _parts_of(name, self._dimensions)
    known = vectors is not None and len(vectors) > 0
    means = np.mean(vectors, axis=0) if known and columns else None
    return {
      column: None if means is None else float(means[index])
      for index, column in enumerate(columns)
    }

  def _append(self, line: str) -> None:
    """Adds a line to the file, all of it or nothing."""
    before = self._path.stat().st_size if self._path.exists() else 0
    try:
      with self._path.open("a") as file:
        file.write(line)
    except OSError:  # a full disk above all
      os.truncate(self._path, before)
      raise

  def state(self) -> Dict[str, Any]:
    """Everything but the text, as JSON values."""
    return {
      "loss_sum": self._loss_sum,
      "losses": self._losses,
      "scores": self._scores,
      "episodes": self.episodes,
      "last_step": self.last_step,
      "last_evaluation": self.last_evaluation,
      "evaluations": self.evaluations,
      "last_game": self.last_game,
      "phase_start": self._phase_start,
      "best_score": self.best_score,
      "best_step": self.best_step,
    }

  def set_state(self, state: Dict[str, Any], text: str) -> None:
    """Goes on from `state` and `text`, with the columns that `text` has."""
    self._text = text
    self._columns = next(csv.reader([text.partition("\n")[0]]))
    self._loss_sum, self._losses = state["loss_sum"], state["losses"]
    self._scores, self.episodes = list(state["scores"]), state["episodes"]
    self.last_step = state["last_step"]
    self.last_evaluation = state["last_evaluation"]
    # Runs that were made before these do not end phases with games.
    self.evaluations = state.get("evaluations", 0)
    self.last_game = state.get("last_game", 0)
    self._phase_start = state.get("phase_start", 0)
    self.best_score = state["best_score"]
    self.best_step = state["best_step"]


def _parts_of(name: str, dimensions: Optional[int]) -> List[str]:
  return [f"{name}_{index}" for index in range(dimensions or 0)]


def _vector_columns(dimensions: Optional[int]) -> List[str]:
  names = ("train_score", "evaluation_score", "unit")
  return [part for name in names for part in _parts_of(name, dimensions)]


def _line(cells: Sequence[Any]) -> str:
  out = io.StringIO()
  csv.writer(out, lineterminator="\n").writerow(cells)
  return out.getvalue()
