"""A frame of a game beside a histogram of each action's returns."""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.core import optional, plotting

BINS = 17  # as in the paper's Appendix C
CONSECUTIVE = 3  # frames of a still, as in the paper
_OTHERS, _TAKEN = plotting.COLOURS[0], plotting.COLOURS[4]
_WIDTH, _DPI = 8, 80  # inches, and pixels of an inch
_TALLEST = 0.85  # of the height between two actions' histograms


class Moment(NamedTuple):
  """What is seen at one step.

  Attributes:
    picture: [H, W] or [H, W, 3] of the game.
    particles: [A, N] of each action.
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
    right a histogram of each action's particles and a mark at their mean.
  """
  agg = require("matplotlib.backends.backend_agg")
  values = np.stack([moment.particles for moment in moments])
  edges = np.linspace(values.min(), values.max() + 1e-6, BINS + 1)
  tallest = max(float(_shares(moment, edges).max()) for moment in moments)
  height = max(3.0, 0.28 * len(names) + 0.8)

  def draw(shown: Sequence[Moment]) -> np.ndarray:
    with plotting.style():
      figure = plotting.new_figure(height * len(shown), _WIDTH)
      figure.set_dpi(_DPI)
      canvas = agg.FigureCanvasAgg(figure)
      rows = figure.subplots(
        len(shown), 2, squeeze=False, width_ratios=(height, _WIDTH - height)
      )
      for (game, returns), moment in zip(rows, shown):
        game.imshow(moment.picture, cmap="gray")
        game.set_axis_off()
        score = "" if moment.score is None else f"score {moment.score:g}, "
        game.set_title(score + names[moment.action])
        _draw_returns(returns, moment, names, edges, tallest)
      rows[-1, 1].set_xlabel("return")
      canvas.draw()
      return np.asarray(canvas.buffer_rgba())[..., :3].copy()

  return draw


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
