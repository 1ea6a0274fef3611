"""Pictures of the chain experiment and of the theory's measurements."""

import pathlib
from typing import Any, Mapping, Sequence

from tf_mmdrl.core import plotting
from tf_mmdrl.tabular import claims, experiment

_MOMENTS = (
  "Mean",
  "2nd central moment",
  "3rd central moment",
  "4th central moment",
  "5th central moment",
  "6th central moment",
)


def write_chain(
  rows: Sequence[experiment.Row], directory: pathlib.Path
) -> None:
  """Writes chain.png and chain.svg."""
  with plotting.style():
    _save(_chain(rows), directory, "chain")


def write_theory(
  curves: Mapping[str, claims.Curves], directory: pathlib.Path
) -> None:
  """Writes theory.png and theory.svg."""
  with plotting.style(formulas=True):
    _save(_theory(curves), directory, "theory")


def _save(figure: Any, directory: pathlib.Path, name: str) -> None:
  png = plotting.to_png(figure, dpi=100)
  (directory / f"{name}.png").write_bytes(png)
  (directory / f"{name}.svg").write_text(plotting.to_svg(figure))


def _chain(rows: Sequence[experiment.Row]) -> Any:
  """One panel for each moment against K: methods with their intervals."""
  figure = plotting.new_figure(6.2, 2.2 * plotting.WIDTH)
  panels = figure.subplots(2, 3, sharex=True).ravel()
  methods = list(dict.fromkeys(row.method for row in rows))
  for moment, panel in enumerate(panels, 1):
    for index, method in enumerate(methods):
      kept = [r for r in rows if r.moment == moment and r.method == method]
      lengths = [row.K for row in kept]
      panel.plot(
        lengths,
        [row.mean for row in kept],
        color=plotting.colour(index),
        marker=plotting.marker(index),
        markersize=3.5,
        label=method,
      )
      low, high = [r.ci_low for r in kept], [r.ci_high for r in kept]
      plotting.band(panel, lengths, low, high, plotting.colour(index))
    exact = [row.exact for row in kept]
    sampled = [row.monte_carlo for row in kept]
    panel.plot(lengths, exact, color=plotting.INK, ls="--", label="exact")
    panel.plot(
      lengths, sampled, "+", color=plotting.INK, ms=7, label="Monte Carlo"
    )
    panel.set_title(_MOMENTS[moment - 1])
    panel.xaxis.get_major_locator().set_params(integer=True)
  for panel in panels[3:]:
    panel.set_xlabel("chain length K")
  plotting.legend_below(figure, panels[0])
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


def _theory(curves: Mapping[str, claims.Curves]) -> Any:
  """One panel for each measurement of `mmdrl theory`."""
  figure = plotting.new_figure(12, 2.5 * plotting.WIDTH)
  panels = figure.subplots(4, 2).ravel()
  for panel, (name, words) in zip(panels, _PANELS.items()):
    _draw(panel, curves[name], *words)
  panels[1].axvline(1.0, color=plotting.INK, lw=1, ls=":")  # the bound
  panels[2].axhline(1.0, color=plotting.INK, lw=1, ls=":")  # above: expansion
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
  measured = -1  # curves so far that are no bounds
  for index, (label, (x, y)) in enumerate(curves.items()):
    bound = label.startswith("γ^α")
    measured += not bound
    panel.plot(
      x,
      y,
      color=plotting.colour(measured),
      marker=plotting.marker(index) if len(x) < 10 else None,
      ls="--" if bound else "-",
      markersize=3.5,
      label=label,
    )
  panel.set(xlabel=x_label, ylabel=y_label)
  if x_scale == "log":
    panel.set_xscale("log", base=2)
    panel.set_xticks(x, [str(size) for size in x])
  # Linear around zero, so that a distance of exactly zero is on the picture.
  linear = {"linthresh": 1e-4} if y_scale == "symlog" else {}
  panel.set_yscale(y_scale, **linear)
  panel.set_title(title)
  panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
