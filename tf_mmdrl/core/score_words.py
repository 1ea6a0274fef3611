"""How scores are written: a name, and what stands behind its colon.

What they mean is in `policies.score_names`. The words alone need no TensorFlow,
so that a misspelt score is told at once.
"""

from typing import NamedTuple, Optional

from tf_mmdrl.core import errors

PLAIN = ("mean", "thompson", "bootstrapped")
WITH_NUMBER = (
  "boltzmann",
  "ucb",
  "cvar",
  "mean_deviation",
  "wang",
  "cpw",
)
WITH_SCHEDULE = ("boltzmann", "ucb")
NAMES = (*PLAIN, *WITH_NUMBER)


class Written(NamedTuple):
  """A score as it was written.

  Attributes:
    name: one of NAMES.
    number: what stands behind the colon, if anything may.
    end: where a schedule that begins at `number` ends; None if there is none.
  """

  name: str
  number: Optional[float] = None
  end: Optional[float] = None


def read(text: str, *, schedule: bool = True) -> Written:
  """The parts of `name`, `name:number` or `name:from->to`.

  Args:
    text: what was written.
    schedule: whether there may be one.

  Returns:
    The parts.
  """
  name, colon, number = (part.strip() for part in text.partition(":"))
  if name not in NAMES:
    raise errors.unknown_name("score", name, NAMES)
  if name in PLAIN:
    if colon:
      raise errors.UserError(f"{name!r} takes no number, got {text!r}")
    return Written(name)
  start, arrow, end = number.partition("->")
  if not arrow:
    return Written(name, _number(number, text))
  if name not in WITH_SCHEDULE or not schedule:
    raise errors.UserError(
      f"{name!r} takes one number here, not a schedule, got {text!r}"
    )
  return Written(name, _number(start, text), _number(end, text))


def read_steady(text: str) -> Written:
  """The same, of a score that does not change as a run goes on."""
  return read(text, schedule=False)


def _number(number: str, text: str) -> float:
  try:
    return float(number)
  except ValueError:
    raise errors.UserError(
      f"{text!r} wants a number after the colon, for example"
      f" {text.partition(':')[0]}:0.5"
    ) from None
