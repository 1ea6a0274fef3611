"""The learning curve of one run as a picture; needs matplotlib."""

import pathlib
from typing import List, Optional, Sequence, Tuple

from tf_mmdrl.core import plotting, whole_files
from tf_mmdrl.core.run_files import Row


def learning_curve(
  rows: Sequence[Row], title: str, path: pathlib.Path
) -> pathlib.Path:
  """Draws the scores and the loss over the steps.

  Args:
    rows: the rows of metrics.csv.
    title: the line above the picture.
    path: the path of the PNG.

  Returns:
    The path.
  """
  with plotting.style():
    figure = plotting.new_figure(3.2, 2 * plotting.WIDTH)
    scores, losses = figure.subplots(1, 2)
    scores.plot(
      *_points(rows, "train_score"), color=plotting.GREY, label="training"
    )
    scores.plot(
      *_points(rows, "evaluation_score"),
      color=plotting.colour(0),
      marker=plotting.marker(0),
      markersize=3.5,
      label="evaluation",
    )
    scores.set(title=title, ylabel="score")
    scores.legend()
    losses.plot(*_points(rows, "loss"), color=plotting.colour(1))
    losses.set(title="Loss", ylabel="mean of the updates")
    for panel in (scores, losses):
      plotting.count_steps(panel)
    whole_files.write(path, plotting.to_png(figure))
  return path


def _points(
  rows: Sequence[Row], column: str
) -> Tuple[List[Optional[float]], List[Optional[float]]]:
  known = [row for row in rows if row[column] is not None]
  return [row["step"] for row in known], [row[column] for row in known]
