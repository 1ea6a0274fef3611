"""Groups of settings that check themselves: types, ranges, known words."""

import dataclasses
from typing import Any, Callable, Optional, Sequence

from tf_mmdrl.core import errors


def setting(
  default: Any,
  help_line: str,
  *,
  low: Optional[float] = None,
  above: Optional[float] = None,
  high: Optional[float] = None,
  choices: Sequence[str] = (),
  check: Optional[Callable[[str], Any]] = None,
) -> Any:
  """A field in [low, high], above a number, or of words that a check allows."""
  limits = dict(
    low=low, above=above, high=high, choices=tuple(choices), check=check
  )
  metadata = {"help": help_line, **limits}
  return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Group:
  """Checks every field of the dataclass that inherits it."""

  def __post_init__(self):
    for field in dataclasses.fields(self):
      value = _typed(field, getattr(self, field.name))
      _check_range(field, value)
      object.__setattr__(self, field.name, value)


def _typed(field: dataclasses.Field, value: Any) -> Any:
  """The value in the field's type, from that type or from text."""
  kind, name = field.type, field.name
  if kind is bool:
    words = {"true": True, "1": True, "on": True, "yes": True}
    words.update({"false": False, "0": False, "off": False, "no": False})
    if str(value).lower() in words:
      return words[str(value).lower()]
    raise errors.UserError(f"{name} must be true or false, got {value!r}")
  if kind is str:
    return str(value)
  try:
    number = float(value)
    if kind is float and number == number:
      return number
    if kind is int and number == int(number):
      # Not int(number): a float has no room for a large seed.
      return int(value) if str(value).lstrip("+-").isdigit() else int(number)
  except (TypeError, ValueError, OverflowError):
    pass  # the same message as for a fraction
  wanted = "a whole number" if kind is int else "a number"
  raise errors.UserError(f"{name} must be {wanted}, got {value!r}")


def _check_range(field: dataclasses.Field, value: Any) -> None:
  limits = field.metadata
  if limits["choices"] and value not in limits["choices"]:
    raise errors.unknown_name(field.name, value, limits["choices"])
  if limits["check"] is not None:
    limits["check"](value)
  low, above, high = limits["low"], limits["above"], limits["high"]
  if low is not None and value < low:
    raise errors.UserError(f"{field.name} must be at least {low}, got {value}")
  if above is not None and value <= above:
    raise errors.UserError(f"{field.name} must be above {above}, got {value}")
  if high is not None and value > high:
    raise errors.UserError(f"{field.name} must be at most {high}, got {value}")
  if isinstance(value, float) and abs(value) == float("inf"):
    raise errors.UserError(f"{field.name} must be finite, got {value}")
