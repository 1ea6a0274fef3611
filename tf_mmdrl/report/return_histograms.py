"""A frame of a game beside a picture of each action's returns.

Returns that are numbers are drawn as histograms, joint ones as scatter plots.
"""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.core import optional, plotting
from tf_mmdrl.report import joint_figures

BINS = 17  # as in the paper's Appendix C
CONSECUTIVE = 3  # frames of a still, as in the paper
_OTHERS, _TAKEN = plotting.COLOURS[0], plotting.COLOURS[4]
_WIDTH, _DPI = 8, 80  # inches, and pixels of an inch
_TALLEST = 0.85  # of the height between two actions' histograms
_SCATTER = 1.25  # inches, of a scatter plot's height

# Draws a moment's returns in a panel, or puts panels in its place.
_Painter = Callable[[Any, "Moment"], None]


class Moment(NamedTuple):
  """What is seen at one step.

  Attributes:
    picture: [H, W] or [H, W, 3] of the game.
    particles: [A, N] of each action; [A, N, D] of joint returns.
    weights: [A, N] of the particles.
    action: the one taken.
    score: so far, if known.
  """

  picture: np.ndarray
  particles: np.ndarray
  weights: np.ndarray
  action: int
  score: Optional[float]


def drawer(
  moments: Sequence[Moment], names: Sequence[str]
) -> Callable[[Sequence[Moment]], np.ndarray]:
  """A function that draws moments below each other, on one scale for all.

  Args:
    moments: all that will be drawn, for the scale.
    names: the names of the actions.

  Returns:
    From some moments to an image [H, W, 3] uint8: on the left the frame, on the
    right a histogram of each action's particles and a mark at their mean; of
    joint returns a scatter plot of each action's particles instead.
  """
  agg = require("matplotlib.backends.backend_agg")
  values = np.stack([moment.particles for moment in moments])
  is_joint = values.ndim == 4
  paint = (_scatters if is_joint else _histograms)(moments, values, names)
  height = max(3.0, 0.28 * len(names) + 0.8)
  left = height
  if is_joint:
    left = min(height, 0.5 * _WIDTH)
    height = max(height, _SCATTER * joint_figures.grid(len(names))[0] + 0.5)

  def draw(shown: Sequence[Moment]) -> np.ndarray:
    with plotting.style():
      figure = plotting.new_figure(height * len(shown), _WIDTH)
      figure.set_dpi(_DPI)
      canvas = agg.FigureCanvasAgg(figure)
      rows = figure.subplots(
        len(shown), 2, squeeze=False, width_ratios=(left, _WIDTH - left)
      )
      if not is_joint:
        rows[-1, 1].set_xlabel("return")
      for (game, returns), moment in zip(rows, shown):
        game.imshow(moment.picture, cmap="gray")
        game.set_axis_off()
        score = "" if moment.score is None else f"score {moment.score:g}, "
        game.set_title(score + names[moment.action])
        paint(returns, moment)
      canvas.draw()
      return np.asarray(canvas.buffer_rgba())[..., :3].copy()

  return draw


def _histograms(
  moments: Sequence[Moment], values: np.ndarray, names: Sequence[str]
) -> _Painter:
  """Draws histograms, on the scale of all values [K, A, N]."""
  edges = np.linspace(values.min(), values.max() + 1e-6, BINS + 1)
  tallest = max(float(_shares(moment, edges).max()) for moment in moments)
  return lambda panel, moment: _draw_returns(
    panel, moment, names, edges, tallest
  )


def _scatters(
  moments: Sequence[Moment], values: np.ndarray, names: Sequence[str]
) -> _Painter:
  """Draws scatter plots, on the scale of all values [K, A, N, D]."""
  del moments
  ends = joint_figures.limits(values)
  return lambda panel, moment: joint_figures.draw_actions(
    panel, moment.particles, names, moment.action, ends
  )


def require(module: str) -> Any:
  """A module that videos need, or an error that says how to get it."""
  return optional.require(module, use="videos", extra="plots")


def consecutive(moments: List[Moment]) -> List[Moment]:
  """Three moments in a row, from the middle of a game."""
  middle = max(0, len(moments) // 2 - 1)
  return moments[middle : middle + CONSECUTIVE]


def _shares(moment: Moment, edges: np.ndarray) -> np.ndarray:
  """[A, BINS] the probability in each bin."""
  actions = zip(moment.particles, moment.weights)
  return np.array([np.histogram(x, edges, weights=w)[0] for x, w in actions])


def _draw_returns(
  panel: Any,
  moment: Moment,
  names: Sequence[str],
  edges: np.ndarray,
  tallest: float,
) -> None:
  """The histograms above each other, the first action on top."""
  rows = np.arange(len(names))[::-1]
  heights = _TALLEST * _shares(moment, edges) / tallest
  means = np.sum(moment.weights * moment.particles, axis=-1)
  for action, (row, height) in enumerate(zip(rows, heights)):
    taken = action == moment.action
    panel.stairs(
      row + height,
      edges,
      baseline=row,
      fill=True,
      color=_TAKEN if taken else _OTHERS,
      alpha=0.9 if taken else 0.55,
    )
  panel.hlines(rows, edges[0], edges[-1], color=plotting.GREY, lw=0.5)
  panel.plot(means, rows + 0.06, "^", color=plotting.INK, ms=3.5)
  panel.grid(visible=False)
  panel.set_yticks(rows + 0.2, names)
  panel.get_yticklabels()[moment.action].set_fontweight("bold")
  panel.tick_params(axis="y", length=0)
  panel.set_ylim(-0.1, len(names))
  panel.set_xlim(edges[0], edges[-1])
  panel.spines["left"].set_visible(False)
