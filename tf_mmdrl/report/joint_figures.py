"""Joint particles of each action as scatter plots."""

import itertools
import math
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import optional, plotting

_PANEL = 2.2  # inches, each way
_DPI = 80
_MARGIN = 0.06  # of an axis, beyond the outermost particles
_TAKEN = plotting.COLOURS[4]


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


def limits(particles: np.ndarray) -> np.ndarray:
  """[2, 2] ends of the axes that show the first pair of all particles.

  Args:
    particles: [..., D].

  Returns:
    (low, high) of the axis to the right, and of the one upwards.
  """
  shown = particles[..., list(pairs(particles.shape[-1])[0])].reshape(-1, 2)
  low, high = shown.min(axis=0), shown.max(axis=0)
  # Particles in one place want an axis around it all the same.
  margin = np.maximum(_MARGIN * (high - low), 1e-3 + 1e-3 * np.abs(high))
  return np.stack([low - margin, high + margin], axis=1)


def grid(num_actions: int) -> Tuple[int, int]:
  """Rows and columns of `draw_actions`."""
  columns = math.ceil(math.sqrt(num_actions))
  return math.ceil(num_actions / columns), columns


def draw_actions(
  panel: Any,
  particles: np.ndarray,
  names: Sequence[str],
  action: int,
  ends: np.ndarray,
) -> None:
  """Puts a scatter plot of each action in a panel's place.

  Args:
    panel: gives its place to the plots.
    particles: [A, N, D]; the first pair of returns is drawn.
    names: of the actions.
    action: the one taken, which has another colour.
    ends: of the axes, from `limits`.
  """
  rows, columns = grid(len(names))
  figure, spec = panel.get_figure(), panel.get_subplotspec()
  place = spec.subgridspec(rows, columns)
  panel.remove()
  i, j = pairs(particles.shape[-1])[0]
  for index, name in enumerate(names):
    row, column = divmod(index, columns)
    one = figure.add_subplot(place[row, column])
    taken = index == action
    colour = _TAKEN if taken else plotting.COLOURS[0]
    one.plot(
      *particles[index][:, [i, j]].T, "o", color=colour, ms=3, alpha=0.6, mew=0
    )
    one.set_title(name, color=colour, weight="bold" if taken else "normal")
    one.set_xlim(*ends[0])
    one.set_ylim(*ends[1])
    if index + columns < len(names):
      one.tick_params(labelbottom=False)
    else:
      one.set_xlabel(f"return {i}")
    if column:
      one.tick_params(labelleft=False)
    else:
      one.set_ylabel(f"return {j}")


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
