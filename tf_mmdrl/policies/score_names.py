"""Scores by name, as the command line and configurations write them.

`mean`, `boltzmann:0.1`, `ucb:1`, `ucb:2->0.1` (a line over the run),
`thompson`, `bootstrapped`, `cvar:0.25`, `mean_deviation:0.5`, `wang:-0.75`,
`cpw:0.71`.
"""

from typing import Callable, Dict, Optional

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.policies import scores

_PLAIN: Dict[str, Callable[[], scores.Score]] = {
  "mean": scores.Mean,
  "thompson": scores.Thompson,
  "bootstrapped": scores.Bootstrapped,
}
_WITH_NUMBER: Dict[str, Callable[..., scores.Score]] = {
  "boltzmann": scores.Boltzmann,
  "ucb": scores.UpperConfidence,
  "cvar": scores.CVaR,
  "mean_deviation": scores.MeanDeviation,
  "wang": scores.Wang,
  "cpw": scores.CPW,
}
_WITH_SCHEDULE = ("boltzmann", "ucb")
NAMES = (*_PLAIN, *_WITH_NUMBER)


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
  name, colon, number = (part.strip() for part in text.partition(":"))
  if name not in NAMES:
    raise errors.unknown_name("score", name, NAMES)
  if name in _PLAIN:
    if colon:
      raise errors.UserError(f"{name!r} takes no number, got {text!r}")
    return _PLAIN[name]()
  make = _WITH_NUMBER[name]
  start, arrow, end = number.partition("->")
  if not arrow:
    return make(_number(number, text))
  if name not in _WITH_SCHEDULE or progress is None:
    raise errors.UserError(
      f"{name!r} takes one number here, not a schedule, got {text!r}"
    )
  first, last = _number(start, text), _number(end, text)
  make(first), make(last)  # both ends must do
  return make(lambda: first + tf.minimum(progress(), 1.0) * (last - first))


def parse_steady(text: str) -> scores.Score:
  """The score that `text` names, which must not depend on draws."""
  score = parse(text)
  if score.draws is not scores.Draws.NONE:
    raise errors.UserError(
      f"a policy is evaluated by a score without draws, got {text!r}; pass for"
      " example mean or cvar:0.25"
    )
  return score


def _number(number: str, text: str) -> float:
  try:
    return float(number)
  except ValueError:
    raise errors.UserError(
      f"{text!r} wants a number after the colon, for example"
      f" {text.partition(':')[0]}:0.5"
    ) from None
