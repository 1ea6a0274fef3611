"""How figures look, and how they are written.

matplotlib is optional and loaded only when something is drawn; without pyplot,
so no window and no global state is touched. A figure is as wide as a phone's
screen, so that its text is readable on any.
"""

import io
import re
import textwrap
from typing import Any, Sequence

from tf_mmdrl.core import optional

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
)
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
MARKERS = "osD^vPX"
WIDTH = 4.4
_LETTERS_PER_INCH = 15
# Text and axes; in a page they take the colour of the page's own text.
_INK = "#1f2328"
_GRID = "#8a9199"

_STYLE = {
  "axes.edgecolor": _GRID,
  "axes.grid": True,
  "axes.grid.axis": "y",
  "axes.labelcolor": _INK,
  "axes.labelsize": 9,
  "axes.linewidth": 0.8,
  "axes.spines.right": False,
  "axes.spines.top": False,
  "axes.titlecolor": _INK,
  "axes.titlelocation": "left",
  "axes.titlesize": 10,
  "axes.titleweight": "bold",
  "figure.constrained_layout.use": True,
  "font.size": 9,
  "grid.alpha": 0.35,
  "grid.color": _GRID,
  "grid.linewidth": 0.6,
  "legend.fontsize": 8,
  "legend.frameon": False,
  "legend.labelcolor": _INK,
  "lines.linewidth": 1.6,
  "svg.fonttype": "none",  # text stays text: selectable, read aloud
  "svg.hashsalt": "mmdrl",  # the same figure gives the same file
  "text.color": _INK,
  "text.parse_math": False,  # a name may have dollars in it
  "xtick.color": _GRID,
  "xtick.labelcolor": _INK,
  "xtick.labelsize": 8,
  "ytick.color": _GRID,
  "ytick.labelcolor": _INK,
  "ytick.labelsize": 8,
}


def require_matplotlib() -> Any:
  """matplotlib, or an error that says how to get it."""
  optional.require("matplotlib.figure", use="reports", extra="report")
  return optional.require("matplotlib", use="reports", extra="report")


def style() -> Any:
  """A context in which figures are made and written."""
  return require_matplotlib().rc_context(_STYLE)


def new_figure(height: float, width: float = WIDTH) -> Any:
  """An empty figure, measured in inches; only within `style`."""
  return require_matplotlib().figure.Figure(figsize=(width, height))


def colour(index: int) -> str:
  """The colour of the index-th agent."""
  return COLOURS[index % len(COLOURS)]


def dash(index: int) -> Any:
  """Its line, a new one when the colours begin again."""
  return DASHES[index // len(COLOURS) % len(DASHES)]


def marker(index: int) -> str:
  """Its marker."""
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


def to_png(figure: Any) -> bytes:
  """The figure on white."""
  out = io.BytesIO()
  figure.savefig(out, format="png", dpi=160, facecolor="white")
  return out.getvalue()


def to_svg(figure: Any) -> str:
  """The figure on no background."""
  out = io.StringIO()
  metadata = {"Date": None, "Creator": None}
  figure.savefig(out, format="svg", transparent=True, metadata=metadata)
  return out.getvalue()


def for_page(svg: str, name: str) -> str:
  """An SVG to stand within a page.

  Args:
    svg: what `to_svg` gave.
    name: of the figure; its identifiers are made unique with it.

  Returns:
    The `<svg>` element: sized by the page, in the colour of the page's text.
  """
  element = svg[svg.index("<svg") :]
  head, rest = element.split(">", 1)
  head = re.sub(r'\s(width|height|xmlns:xlink)="[^"]*"', "", head)
  rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
  rest = re.sub(r'\sid="([^"]+)"', rf' id="{name}-\1"', rest)
  rest = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", rest)
  rest = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', rest)
  return f"{head}>{rest}".replace(_INK, "currentColor")


def slug(words: Sequence[str]) -> str:
  """A file name of words."""
  return re.sub(r"[^A-Za-z0-9.=-]+", "_", "_".join(words)).strip("_")
