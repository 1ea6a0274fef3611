"""Pictures of the chain experiment and of the theory's measurements.

matplotlib is optional and imported here only when a picture is drawn. The
figures are made without pyplot, so no window and no global state is touched.
"""

import pathlib
from typing import Any, Mapping, Sequence

from tf_mmdrl.core import optional
from tf_mmdrl.tabular import claims, experiment

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS = (
  "#0072B2",
  "#D55E00",
  "#009E73",
  "#CC79A7",
  "#E69F00",
  "#56B4E9",
  "#7F7F7F",
  "#000000",
)
_MARKERS = "osD^vPX*"
_MOMENTS = (
  "Mean",
  "2nd central moment",
  "3rd central moment",
  "4th central moment",
  "5th central moment",
  "6th central moment",
)


def require_matplotlib() -> Any:
  """matplotlib's Figure class, or an error that says how to get it."""
  module = optional.require("matplotlib.figure", use="figures", extra="plots")
  return module.Figure


def save(figure: Any, directory: pathlib.Path, name: str) -> None:
  """Writes the figure as PNG and as SVG."""
  figure.savefig(directory / f"{name}.png", dpi=80)
  figure.savefig(directory / f"{name}.svg", metadata={"Date": None})


def chain(rows: Sequence[experiment.Row]) -> Any:
  """One panel for each moment against K: methods with their intervals."""
  figure = require_matplotlib()(figsize=(11, 6.6), layout="constrained")
  panels = figure.subplots(2, 3, sharex=True).ravel()
  methods = list(dict.fromkeys(row.method for row in rows))
  for moment, panel in enumerate(panels, 1):
    for index, method in enumerate(methods):
      kept = [r for r in rows if r.moment == moment and r.method == method]
      lengths = [row.K for row in kept]
      colour = _COLOURS[index % len(_COLOURS)]
      panel.plot(
        lengths,
        [row.mean for row in kept],
        color=colour,
        marker=_MARKERS[index % len(_MARKERS)],
        markersize=3.5,
        linewidth=1.4,
        label=method,
      )
      low, high = [r.ci_low for r in kept], [r.ci_high for r in kept]
      panel.fill_between(lengths, low, high, color=colour, alpha=0.18, lw=0)
    exact = [row.exact for row in kept]
    sampled = [row.monte_carlo for row in kept]
    panel.plot(lengths, exact, color="black", lw=1.6, ls="--", label="exact")
    panel.plot(lengths, sampled, "k+", ms=7, label="Monte Carlo")
    panel.set_title(_MOMENTS[moment - 1], fontsize=10)
    panel.grid(alpha=0.25)
    panel.xaxis.get_major_locator().set_params(integer=True)
  for panel in panels[3:]:
    panel.set_xlabel("chain length K")
  handles, labels = panels[0].get_legend_handles_labels()
  figure.legend(
    handles, labels, loc="outside lower center", ncols=6, frameon=False
  )
  return figure


# Of each panel of `theory`: title, label of x, label of y, scale of x and y.
_PANELS = {
  "separation": (
    "Theorem 1: distributions that share moments",
    "moments shared",
    "MMD",
    "linear",
    "symlog",
  ),
  "contraction": (
    "Theorem 2.1: random MDPs, γ = 0.9",
    "MMD$_\\infty$ ratio / γ$^{α/2}$",
    "share of the MDPs below",
    "linear",
    "linear",
  ),
  "gaussian": (
    "Theorem 2.2: Gaussian kernel, σ = 0.1",
    "α",
    "MMD$_\\infty$ ratio",
    "linear",
    "linear",
  ),
  "exp-prod": (
    "Theorem 2.2: exp-prod kernel, σ = 0.1",
    "α",
    "MMD$_\\infty$ ratio",
    "linear",
    "log",
  ),
  "gaussian:1": (
    "Theorem 3: gaussian:1, standard normal",
    "particles n",
    "MMD",
    "log",
    "log",
  ),
  "unrectified:1": (
    "Theorem 3: unrectified:1, standard normal",
    "particles n",
    "MMD",
    "log",
    "log",
  ),
  "expansion": (
    "Moment expansion of the Gaussian kernel",
    "terms",
    "relative error",
    "linear",
    "log",
  ),
}


def theory(curves: Mapping[str, claims.Curves]) -> Any:
  """One panel for each measurement of `mmdrl theory`."""
  figure = require_matplotlib()(figsize=(12, 13), layout="constrained")
  panels = figure.subplots(4, 2).ravel()
  for panel, (name, words) in zip(panels, _PANELS.items()):
    _draw(panel, curves[name], *words)
  panels[1].axvline(1.0, color="black", lw=1, ls=":")  # the bound
  panels[2].axhline(1.0, color="black", lw=1, ls=":")  # above it: expansion
  for panel in panels[len(_PANELS) :]:
    panel.set_visible(False)
  return figure


def _draw(
  panel: Any,
  curves: claims.Curves,
  title: str,
  x_label: str,
  y_label: str,
  x_scale: str,
  y_scale: str,
) -> None:
  """One panel; a bound is dashed, in the colour of what it bounds."""
  colours = iter(_COLOURS)
  colour = _COLOURS[0]
  for index, (label, (x, y)) in enumerate(curves.items()):
    bound = label.startswith("γ^α")
    colour = colour if bound else next(colours)
    panel.plot(
      x,
      y,
      color=colour,
      marker=_MARKERS[index % len(_MARKERS)] if len(x) < 10 else None,
      ls="--" if bound else "-",
      markersize=4,
      linewidth=1.4,
      label=label,
    )
  panel.set(xlabel=x_label, ylabel=y_label)
  if x_scale == "log":
    panel.set_xscale("log", base=2)
    panel.set_xticks(x, [str(size) for size in x])
  # Linear around zero, so that a distance of exactly zero is on the picture.
  linear = {"linthresh": 1e-4} if y_scale == "symlog" else {}
  panel.set_yscale(y_scale, **linear)
  panel.set_title(title, fontsize=10)
  panel.grid(alpha=0.25)
  panel.legend(
    fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5)
  )
