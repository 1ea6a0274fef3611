"""Utilities by name, as the command line and configurations write them.

`sum`, `linear:1,0.5`, `chebyshev:1,1` or with a reference `chebyshev:1,1@5,-3`,
`ces:0.5:1,1` (rho, then the weights), `threshold:1,2` (limits; `-inf` for
none), and `package.module:function` for a function of your own. Criteria:
`esr`, `ser`, or a score of the utility in the expectation's place, as
`cvar:0.25`.
"""

import collections.abc
from typing import Any, Tuple

from tf_mmdrl.core import errors, plugins, score_words
from tf_mmdrl.policies import score_names, utilities

NAMES = ("sum", "linear", "chebyshev", "ces", "threshold")
CRITERIA = ("esr", "ser")


def parse(text: str) -> utilities.Utility:
  """The utility that `text` names."""
  name, colon, rest = (part.strip() for part in text.partition(":"))
  if name == "sum" and not colon:
    return utilities.Linear()
  if name not in NAMES and plugins.is_place(text):
    kind: Any = collections.abc.Callable
    function = plugins.load("utility", text, kind)
    return utilities.Function(function, text)
  if name not in NAMES or name == "sum":
    raise errors.unknown_name("utility", name, NAMES)
  if name == "linear":
    return utilities.Linear(_numbers(rest, text))
  if name == "threshold":
    return utilities.Threshold(_numbers(rest, text))
  if name == "ces":
    rho, _, weights = rest.partition(":")
    if "," in rho:
      raise errors.UserError(
        f"the utility {text!r} wants one number, rho, before its weights, got"
        f" {rho!r}; write for example ces:0.5:1,1"
      )
    return utilities.CES(_numbers(rho, text)[0], _numbers(weights, text))
  weights, at, reference = rest.partition("@")
  return utilities.Chebyshev(
    _numbers(weights, text), _numbers(reference, text) if at else ()
  )


def parse_score(
  utility: str, criterion: str = "esr", *, accrued: bool = False
) -> utilities.UtilityScore:
  """The score of joint distributions that a utility and a criterion name."""
  parsed, criterion = parse(utility), criterion.strip()
  if criterion == "ser":
    return utilities.OfExpectation(parsed, accrued)
  if criterion == "esr":
    return utilities.Expected(parsed, accrued=accrued)
  if criterion.partition(":")[0] not in score_words.NAMES:
    raise errors.unknown_name(
      "criterion", criterion, (*CRITERIA, *score_words.NAMES)
    )
  score = score_names.parse_steady(criterion)
  return utilities.Expected(parsed, score, accrued=accrued)


def _numbers(part: str, text: str) -> Tuple[float, ...]:
  try:
    numbers = tuple(float(number) for number in part.split(","))
  except ValueError:
    numbers = ()
  if not numbers or any(number != number for number in numbers):
    raise errors.UserError(
      f"the utility {text!r} wants numbers separated by commas where {part!r}"
      " stands; write for example linear:1,0.5 or ces:0.5:1,1"
    )
  return numbers
