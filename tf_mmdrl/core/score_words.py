"""How scores are written: a name, and what stands behind its colon.

What they mean is in `policies.score_names`. The words alone need no TensorFlow,
so that a misspelt score is told at once.
"""

import math
from typing import Callable, NamedTuple, Optional

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
WITH_DRAWS = ("thompson", "bootstrapped", "boltzmann")
NAMES = (*PLAIN, *WITH_NUMBER)


class Range(NamedTuple):
  """What a score's number may be.

  Attributes:
    name: what the number is called.
    holds: whether a number is one of these.
    wanted: the same in words.
  """

  name: str
  holds: Callable[[float], bool]
  wanted: str


_RANGES = {
  "boltzmann": Range("temperature", lambda t: t > 0, "above 0"),
  "ucb": Range("beta", lambda b: b >= 0, "at least 0"),
  "cvar": Range("level", lambda a: 0 < a <= 1, "in (0, 1]"),
  "mean_deviation": Range("penalty", lambda _: True, "a number"),
  "wang": Range("eta", lambda _: True, "a number"),
  "cpw": Range("eta", lambda e: 0.3 <= e <= 1, "in [0.3, 1]"),
}


def require(name: str, number: float) -> None:
  """Raises unless a score's number is in its range.

  Args:
    name: one of WITH_NUMBER.
    number: what stands behind its colon.
  """
  allowed = _RANGES[name]
  wanted = allowed.wanted if math.isfinite(number) else "finite"
  if wanted == "finite" or not allowed.holds(number):
    raise errors.UserError(f"{allowed.name} must be {wanted}, got {number}")


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
    return Written(name, _number(name, number, text))
  if name not in WITH_SCHEDULE or not schedule:
    raise errors.UserError(
      f"{name!r} takes one number here, not a schedule, got {text!r}"
    )
  return Written(name, _number(name, start, text), _number(name, end, text))


def read_steady(text: str) -> Written:
  """The same, of a score that policies are evaluated by.

  Args:
    text: what was written. It must not change as a run goes on, and must not
      depend on draws.

  Returns:
    The parts.
  """
  written = read(text, schedule=False)
  if written.name in WITH_DRAWS:
    raise errors.UserError(
      f"a policy is evaluated by a score without draws, got {text!r}; pass for"
      " example mean or cvar:0.25"
    )
  return written


def _number(name: str, number: str, text: str) -> float:
  try:
    found = float(number)
  except ValueError:
    raise errors.UserError(
      f"{text!r} wants a number after the colon, for example"
      f" {text.partition(':')[0]}:0.5"
    ) from None
  require(name, found)
  return found
