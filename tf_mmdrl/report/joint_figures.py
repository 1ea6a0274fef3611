"""Joint particles of each action as scatter plots."""

import itertools
import math
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import optional, plotting

_PANEL = 2.2  # inches, each way
_DPI = 80
_MARGIN = 0.06  # of an axis, beyond the outermost particles
_TICKS = 3  # intervals at most: labels of small panels would collide
_TAKEN = plotting.COLOURS[4]


def pairs(dimensions: int) -> List[Tuple[int, int]]:
  """The pairs of returns that are drawn; (0, 0) if there is one return."""
  return list(itertools.combinations(range(dimensions), 2)) or [(0, 0)]


def draw(
  particles: Sequence[np.ndarray],
  names: Sequence[str],
  monte_carlo: Optional[Sequence[np.ndarray]] = None,
  weights: Optional[Sequence[np.ndarray]] = None,
) -> Any:
  """A panel for each action and pair of returns.

  Each action has a row, each pair a column; of one pair actions are in a grid.

  Only within `plotting.style`.

  Args:
    particles: for each action [N, D].
    names: of the actions.
    monte_carlo: for each action [K, D] returns that were played, to be drawn
      over the particles; [0, D] where none are known.
    weights: for each action [N] of the particles, summing to 1; equal ones if
      None.

  Returns:
    The figure; a panel's title has the correlation, of particles and, in
    brackets, of what was played.
  """
  columns = pairs(particles[0].shape[-1])
  shape = (len(names), len(columns))
  if len(columns) == 1:
    shape = grid(len(names))
  figure = plotting.new_figure(_PANEL * shape[0], _PANEL * shape[1])
  panels = figure.subplots(*shape, squeeze=False).ravel()
  for panel in panels[len(names) * len(columns) :]:
    panel.set_axis_off()
  rows = np.split(panels[: len(names) * len(columns)], len(names))
  for row, name in enumerate(names):
    for panel, (i, j) in zip(rows[row], columns):
      panel.plot(
        *particles[row][:, [i, j]].T, "o", color=plotting.COLOURS[0], ms=2.5
      )
      own = None if weights is None else weights[row]
      title = f"{name}: {correlation(particles[row], i, j, own):.2f}"
      played = None if monte_carlo is None else monte_carlo[row]
      if played is not None and len(played):
        panel.plot(*played[:, [i, j]].T, "x", color=_TAKEN, ms=4, mew=0.8)
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
  # Particles in one place want an axis around it all the same, and one whose
  # numbers are short.
  size = np.abs(shown).max(axis=0)
  one_place = high - low <= 1e-3 * size
  margin = np.where(one_place, 0.1 * size + 0.1, _MARGIN * (high - low))
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
    one.locator_params(nbins=_TICKS)
    if index + columns < len(names):
      one.tick_params(labelbottom=False)
    else:
      one.set_xlabel(f"return {i}")
    if column:
      one.tick_params(labelleft=False)
    else:
      one.set_ylabel(f"return {j}")


def correlation(
  vectors: np.ndarray, i: int, j: int, weights: Optional[np.ndarray] = None
) -> float:
  """Of two parts of vectors.

  Args:
    vectors: [K, D].
    i: one part.
    j: the other.
    weights: [K] of the vectors, summing to 1; equal ones if None.

  Returns:
    The correlation; 0 if one of the parts does not vary.
  """
  if weights is None:
    weights = np.full([len(vectors)], 1 / len(vectors))
  x, y = (part - weights @ part for part in (vectors[:, i], vectors[:, j]))
  size = np.sqrt((weights @ x**2) * (weights @ y**2))
  # Equal numbers differ from their mean by rounding.
  is_rounding = size <= 1e-12 * np.abs(vectors[:, [i, j]]).max() ** 2
  return 0.0 if is_rounding else float(weights @ (x * y) / size)


def image(
  particles: np.ndarray, weights: np.ndarray, names: Sequence[str]
) -> np.ndarray:
  """[H, W, 3] uint8, for TensorBoard.

  Args:
    particles: [A, N, D].
    weights: [A, N], summing to 1 for each action.
    names: of the actions.

  Returns:
    The picture.
  """
  agg = optional.require(
    "matplotlib.backends.backend_agg", use="figures", extra="plots"
  )
  with plotting.style():
    figure = draw(list(particles), names, weights=list(weights))
    figure.set_dpi(_DPI)
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
