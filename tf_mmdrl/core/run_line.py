"""The line that training shows: how far, how well, how fast."""

import time
from typing import Any, Dict, List, Optional, Sequence, TextIO

from tf_mmdrl.core import progress, score_text

_BLOCKS = "▁▂▃▄▅▆▇█"
_SHOWN = 10  # evaluations in the small curve


class RunLine:
  """Says where a run is; in a terminal also with a small curve of its scores.

  Attributes:
    rate: steps a second since the last row, once that is known.
  """

  def __init__(
    self,
    steps: int,
    *,
    first: int = 0,
    scores: Sequence[float] = (),
    stream: Optional[TextIO] = None,
  ):
    """Begins at a step.

    Args:
      steps: of the whole run.
      first: where it goes on.
      scores: of the evaluations before.
      stream: where to write; standard error if not given.
    """
    self._progress = progress.Progress(steps, "train", stream, first=first)
    self._scores = list(scores)
    self._train_score: Optional[float] = None
    self._learns = False
    self._since, self._since_step = time.monotonic(), first
    self._loss: Optional[float] = None
    self.rate: Optional[float] = None

  def show(self, step: int, loss: Optional[float]) -> None:
    """Shows a round.

    Args:
      step: of the run.
      loss: of the round; None before learning starts.
    """
    if loss is not None and not self._learns:
      # What was played before goes by much faster, and the first update
      # compiles: neither tells how long the rest will take.
      self._learns = True
      self._progress.forget_pace(step)
      self._since, self._since_step = time.monotonic(), step
      self.rate = None
    self._loss = loss
    self._progress.update(step, ", ".join(self._parts(step)))

  def evaluate(self, step: int, share: float) -> None:
    """Shows how far the evaluation at a step is, from 0 to 1."""
    parts = [f"evaluating {share:.0%}", *self._parts(step)]
    self._progress.update(step, ", ".join(parts))

  def report(self, row: Dict[str, Any]) -> None:
    """Takes note of a row of the metrics."""
    now, step = time.monotonic(), row["step"]
    if step > self._since_step:
      self.rate = (step - self._since_step) / max(1e-9, now - self._since)
    self._since, self._since_step = now, step
    if row["train_score"] is not None:
      self._train_score = row["train_score"]
    if row["evaluation_score"] is not None:
      self._scores.append(row["evaluation_score"])

  def close(self) -> None:
    """Ends the line."""
    self._progress.close()

  def _parts(self, step: int) -> List[str]:
    """The most wanted first: a narrow terminal shows only those."""
    parts = []
    if self._scores:
      curve = ""
      if self._progress.draws and len(self._scores) > 1:
        curve = " " + sparkline(self._scores[-_SHOWN:])
      newest = score_text.number(self._scores[-1])
      parts.append(f"evaluation {newest}{curve}")
    if self.rate is not None:
      parts.append(f"{self.rate:,.0f} steps/s")
    parts.append(f"step {step:,}")
    if self._train_score is not None:
      parts.append(f"score {score_text.number(self._train_score)}")
    if self._loss is not None:
      parts.append(f"loss {self._loss:.3g}")
    return parts


def sparkline(values: Sequence[float]) -> str:
  """A curve of one character a value, from the lowest to the highest."""
  low, high = min(values), max(values)
  if high <= low:
    return _BLOCKS[3] * len(values)
  top = len(_BLOCKS) - 1
  return "".join(
    _BLOCKS[round(top * (value - low) / (high - low))] for value in values
  )
