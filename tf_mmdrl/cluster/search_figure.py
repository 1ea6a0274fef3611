"""A search as a picture: how it went, and which settings mattered."""

import pathlib
from typing import Any, Dict, Sequence

from tf_mmdrl.cluster.search import Trial, require_optuna
from tf_mmdrl.core import plotting, whole_files


def importances(study: Any) -> Dict[str, float]:
  """Setting -> its share of what made the scores differ; {} if unknown."""
  optuna = require_optuna()
  complete = [t for t in study.trials if t.state.name == "COMPLETE"]
  if len(complete) < 4 or len({t.value for t in complete}) < 2:
    return {}
  try:
    return optuna.importance.get_param_importances(
      study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )
  except (RuntimeError, ValueError):  # too few trials for its estimate
    return {}


def draw(
  found: Sequence[Trial], shares: Dict[str, float], path: pathlib.Path
) -> None:
  """Writes the PNG.

  Args:
    found: all trials, in their order.
    shares: of `importances`.
    path: of the picture.
  """
  complete = [t for t in found if t.state == "complete" and t.value is not None]
  values = [t.value or 0.0 for t in complete]
  with plotting.style():
    figure = plotting.new_figure(3.2, 2 * plotting.WIDTH)
    history, important = figure.subplots(1, 2)
    numbers = [t.number for t in complete]
    best = [max(values[: n + 1]) for n in range(len(values))]
    history.plot(numbers, values, "o", color=plotting.GREY, label="trial")
    history.step(
      numbers, best, where="post", color=plotting.colour(0), label="best so far"
    )
    for trial in found:
      if trial.state == "pruned":
        history.axvline(trial.number, color=plotting.GREY, lw=0.5, ls=":")
    history.set(
      title="Trials (dotted: stopped early)", xlabel="trial", ylabel="score"
    )
    history.legend()
    names = list(shares)[::-1]
    important.barh(
      [plotting.wrapped(name) for name in names],
      [shares[name] for name in names],
      color=plotting.colour(1),
    )
    important.set(title="Importance", xlabel="share of the differences")
    whole_files.write(path, plotting.to_png(figure))
