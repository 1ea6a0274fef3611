"""How all figures look, and how they are written: the one plot style.

matplotlib is optional and loaded only when something is drawn; without pyplot,
so no window and no global state is touched.
"""

import io
import textwrap
from typing import Any

from tf_mmdrl.core import optional

INK = "#1f2328"  # of text, and of what is exact
GREY = "#8a9199"  # of axes, grids and levels to compare with
# Okabe and Ito's colours, which the colour-blind can tell apart, in an order in
# which neighbours differ most; also in their darkness, for prints in grey.
COLOURS = (
  "#0072B2",
  "#E69F00",
  "#009E73",
  "#CC79A7",
  "#D55E00",
  "#56B4E9",
  "#999999",
  INK,
)
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MARKERS = "osD^vPX*"
WIDTH = 4.4  # of a phone's screen, so that text is readable on any
_LETTERS_PER_INCH = 15

_STYLE = {
  "axes.edgecolor": GREY,
  "axes.grid": True,
  "axes.grid.axis": "y",
  "axes.labelcolor": INK,
  "axes.labelsize": 9,
  "axes.linewidth": 0.8,
  "axes.spines.right": False,
  "axes.spines.top": False,
  "axes.titlecolor": INK,
  "axes.titlelocation": "left",
  "axes.titlesize": 10,
  "axes.titleweight": "bold",
  "figure.constrained_layout.use": True,
  "font.size": 9,
  "grid.alpha": 0.35,
  "grid.color": GREY,
  "grid.linewidth": 0.6,
  "legend.fontsize": 8,
  "legend.frameon": False,
  "legend.labelcolor": INK,
  "lines.linewidth": 1.6,
  "svg.fonttype": "none",  # text stays text: selectable, read aloud
  "svg.hashsalt": "mmdrl",  # the same figure gives the same file
  "text.color": INK,
  "xtick.color": GREY,
  "xtick.labelcolor": INK,
  "xtick.labelsize": 8,
  "ytick.color": GREY,
  "ytick.labelcolor": INK,
  "ytick.labelsize": 8,
}


def require_matplotlib(use: str = "figures", extra: str = "plots") -> Any:
  """matplotlib, or an error that says how to get it.

  Args:
    use: who needs it, in the plural.
    extra: the extra of this package that installs it.

  Returns:
    The module.
  """
  optional.require("matplotlib.figure", use=use, extra=extra)
  return optional.require("matplotlib", use=use, extra=extra)


def style(*, formulas: bool = False) -> Any:
  """A context in which figures are made and written.

  Args:
    formulas: whether text between dollars is a formula.
  """
  changes = {**_STYLE, "text.parse_math": formulas}
  return require_matplotlib().rc_context(changes)


def new_figure(height: float, width: float = WIDTH) -> Any:
  """An empty figure, measured in inches; only within `style`."""
  return require_matplotlib().figure.Figure(figsize=(width, height))


def band(panel: Any, x: Any, low: Any, high: Any, hue: str) -> None:
  """Shades the interval around a line."""
  panel.fill_between(x, low, high, color=hue, alpha=0.2, lw=0)


def count_steps(panel: Any) -> None:
  """Labels the x-axis with agent steps, as 10k rather than 10000."""
  from matplotlib import ticker

  panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
  panel.set_xlabel("agent steps")


def colour(index: int) -> str:
  """The colour of the index-th line."""
  return COLOURS[index % len(COLOURS)]


def dash(index: int) -> Any:
  """The dashes of the index-th line; new ones when the colours begin again."""
  return DASHES[index // len(COLOURS) % len(DASHES)]


def marker(index: int) -> str:
  """The marker of the index-th line."""
  return MARKERS[index % len(MARKERS)]


def legend_below(figure: Any, axes: Any) -> None:
  """Puts the legend under the figure, where it covers nothing."""
  handles, labels = axes.get_legend_handles_labels()
  if len(labels) > 1:
    letters = _LETTERS_PER_INCH * figure.get_figwidth()
    columns = int(letters / (max(map(len, labels)) + 6))  # 6 for the line
    columns = max(1, min(columns, len(labels)))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def wrapped(label: str, width: int = 24) -> str:
  """A label in lines; by default short enough to stand beside a panel."""
  return "\n".join(textwrap.wrap(label, width, break_long_words=False))


def to_png(figure: Any, dpi: int = 160) -> bytes:
  """The figure on white."""
  out = io.BytesIO()
  figure.savefig(out, format="png", dpi=dpi, facecolor="white")
  return out.getvalue()


def to_svg(figure: Any) -> str:
  """The figure on no background."""
  out = io.StringIO()
  metadata = {"Date": None, "Creator": None}
  figure.savefig(out, format="svg", transparent=True, metadata=metadata)
  return out.getvalue()
