"""Joint particles of each action as scatter plots, a panel for each pair."""

import itertools
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import optional, plotting

_PANEL = 2.2  # inches, each way
_DPI = 80


def pairs(dimensions: int) -> List[Tuple[int, int]]:
  """The pairs of returns that are drawn; (0, 0) if there is one return."""
  return list(itertools.combinations(range(dimensions), 2)) or [(0, 0)]


def draw(
  particles: np.ndarray,
  names: Sequence[str],
  monte_carlo: Optional[Sequence[np.ndarray]] = None,
) -> Any:
  """A row of panels for each action, a column for each pair of returns.

  Only within `plotting.style`.

  Args:
    particles: [A, N, D].
    names: of the actions.
    monte_carlo: for each action [K, D] returns that were played, to be drawn
      below the particles.

  Returns:
    The figure; a panel's title has the correlation, of particles and, in
    brackets, of what was played.
  """
  columns = pairs(particles.shape[-1])
  figure = plotting.new_figure(_PANEL * len(names), _PANEL * len(columns))
  panels = figure.subplots(len(names), len(columns), squeeze=False)
  for row, name in enumerate(names):
    for panel, (i, j) in zip(panels[row], columns):
      played = None if monte_carlo is None else monte_carlo[row]
      if played is not None:
        panel.plot(
          *played[:, [i, j]].T, ".", color=plotting.GREY, ms=2, alpha=0.3
        )
      panel.plot(
        *particles[row][:, [i, j]].T, "o", color=plotting.COLOURS[0], ms=2.5
      )
      title = f"{name}: {correlation(particles[row], i, j):.2f}"
      if played is not None:
        title += f" ({correlation(played, i, j):.2f})"
      panel.set_title(title)
      panel.set_xlabel(f"return {i}")
      panel.set_ylabel(f"return {j}")
  return figure


def correlation(vectors: np.ndarray, i: int, j: int) -> float:
  """Of two parts of vectors [K, D]; 0 if one of them does not vary."""
  x, y = (part - part.mean() for part in (vectors[:, i], vectors[:, j]))
  size = float(np.sqrt((x**2).sum() * (y**2).sum()))
  return float((x * y).sum()) / size if size > 0 else 0.0


def image(particles: np.ndarray, names: Sequence[str]) -> np.ndarray:
  """[H, W, 3] uint8, for TensorBoard; `particles` is [A, N, D]."""
  agg = optional.require(
    "matplotlib.backends.backend_agg", use="figures", extra="plots"
  )
  with plotting.style():
    figure = draw(particles, names)
    figure.set_dpi(_DPI)
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
