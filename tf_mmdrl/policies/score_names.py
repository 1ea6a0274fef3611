"""Scores by name, as the command line and configurations write them.

`mean`, `boltzmann:0.1`, `ucb:1`, `ucb:2->0.1` (a line over the run),
`thompson`, `bootstrapped`, `cvar:0.25`, `mean_deviation:0.5`, `wang:-0.75`,
`cpw:0.71`.
"""

from typing import Callable, Dict, Optional

import tensorflow as tf

from tf_mmdrl.core import score_words
from tf_mmdrl.policies import scores

_MAKE: Dict[str, Callable[..., scores.Score]] = {
  "mean": scores.Mean,
  "thompson": scores.Thompson,
  "bootstrapped": scores.Bootstrapped,
  "boltzmann": scores.Boltzmann,
  "ucb": scores.UpperConfidence,
  "cvar": scores.CVaR,
  "mean_deviation": scores.MeanDeviation,
  "wang": scores.Wang,
  "cpw": scores.CPW,
}


def parse(
  text: str, progress: Optional[Callable[[], tf.Tensor]] = None
) -> scores.Score:
  """The score that `text` names.

  Args:
    text: `name` or `name:number`, or `name:from->to` for a schedule.
    progress: gives the share of the run that is over; for schedules.

  Returns:
    The score.
  """
  written = score_words.read(text, schedule=progress is not None)
  make, first, last = _MAKE[written.name], written.number, written.end
  if first is None:
    return make()
  if last is None or progress is None:
    return make(first)
  return make(lambda: first + tf.minimum(progress(), 1.0) * (last - first))


def parse_steady(text: str) -> scores.Score:
  """The score that `text` names, which must not depend on draws."""
  score_words.read_steady(text)
  return parse(text)
