"""The learning curve of a run as a picture; needs matplotlib."""

import pathlib
from typing import List, Optional, Sequence, Tuple

from tf_mmdrl.core.run_files import Row


def learning_curve(
  rows: Sequence[Row], title: str, path: pathlib.Path
) -> pathlib.Path:
  """Draws the scores and the loss over the steps.

  Args:
    rows: of metrics.csv.
    title: above the picture.
    path: of the PNG.

  Returns:
    The path.
  """
  from matplotlib import figure, ticker

  picture = figure.Figure(figsize=(9, 3.5), layout="constrained")
  scores, losses = picture.subplots(1, 2)
  scores.plot(*_points(rows, "train_score"), color="0.7", label="training")
  scores.plot(
    *_points(rows, "evaluation_score"), "o-", color="C0", label="evaluation"
  )
  scores.set(xlabel="agent steps", ylabel="score")
  scores.legend(frameon=False)
  losses.plot(*_points(rows, "loss"), color="C1")
  losses.set(xlabel="agent steps", ylabel="loss")
  for axes in (scores, losses):
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.spines[["top", "right"]].set_visible(False)
  picture.suptitle(title)
  picture.savefig(path, dpi=120)
  return path


def _points(
  rows: Sequence[Row], column: str
) -> Tuple[List[Optional[float]], List[Optional[float]]]:
  known = [row for row in rows if row[column] is not None]
  return [row["step"] for row in known], [row[column] for row in known]
