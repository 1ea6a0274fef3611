"""How the unit of return is written: `auto`, `auto:X`, or a number.

What it means is in `agents.unit`. The words alone need no TensorFlow, so that a
wrong one is told at once.
"""

import math
from typing import NamedTuple, Optional, Union

from tf_mmdrl.core import errors

AUTO = "auto"
LARGEST_EXPONENT = 100  # of the unit: float32 ends at 127


class Written(NamedTuple):
  """A unit as it was written.

  Attributes:
    is_auto: whether it is found from the rewards.
    number: how many units returns are to have, if it is found; otherwise how
      many natural rewards one unit is. None for `auto` alone.
  """

  is_auto: bool
  number: Optional[float] = None


def read(unit: Union[str, float]) -> Written:
  """The parts of `auto`, `auto:X` or a number."""
  word, colon, number = str(unit).partition(":")
  if word.strip() != AUTO:
    return Written(False, _number(unit, unit))
  return Written(True, _number(number, unit) if colon else None)


def _number(text: Union[str, float], unit: Union[str, float]) -> float:
  try:
    number = math.nan if isinstance(text, bool) else float(text)
    if 2.0**-LARGEST_EXPONENT <= number <= 2.0**LARGEST_EXPONENT:
      return number
  except (TypeError, ValueError):
    pass  # the same message
  raise errors.UserError(
    f"unit must be {AUTO!r}, '{AUTO}:X' for returns of X units, or how many"
    f" natural rewards one unit is, from 2^-{LARGEST_EXPONENT} to"
    f" 2^{LARGEST_EXPONENT}, got {unit!r}"
  )
