"""How kernels are written: names, and the numbers behind their colons.

What they mean is in `ops.kernel_names`. The words alone need no TensorFlow, so
that a misspelt kernel is told at once.
"""

import re
from typing import List, NamedTuple, Optional, Tuple

from tf_mmdrl.core import errors, plugins
from tf_mmdrl.ops import kernel_checks

ONE_NUMBER = (
  "gaussian",
  "unrectified",
  "laplace",
  "multiquadric",
  "exp_prod",
  "smooth_energy",
)
MIXTURE, GEOMETRIC = "gaussian_mixture", "gaussian_geometric"
MEDIAN, ANNEALED = "gaussian_median", "gaussian_annealed"
# What the numbers of a kernel are called, where they are no bandwidths.
_PARAMETERS = {"exp_prod": "sigma"}
NAMES = (*ONE_NUMBER, MIXTURE, GEOMETRIC, MEDIAN, ANNEALED)


class Term(NamedTuple):
  """A kernel of a sum, or a rule.

  Attributes:
    name: one of NAMES, or `package.module:NAME`.
    numbers: what stands behind its colon.
    coefficient: what it is multiplied by.
  """

  name: str
  numbers: Tuple[float, ...] = ()
  coefficient: float = 1.0


def check(text: str) -> None:
  """Raises unless this is a kernel, or a rule that makes one.

  What `ops.kernel_names` makes of it can be wrong only where a kernel is
  somebody's own.
  """
  rule = read_rule(text)
  if rule is not None:
    kernel_checks.positive(f"numbers of {rule.name}", rule.numbers)
    return
  terms = read(text)
  for term in terms:
    if term.name == GEOMETRIC and term.numbers:
      kernel_checks.exponents(*term.numbers)
    elif term.name == "unrectified":
      kernel_checks.alpha(*term.numbers)
    elif term.name in (*ONE_NUMBER, MIXTURE):
      kernel_checks.positive(
        _PARAMETERS.get(term.name, "bandwidths"), term.numbers
      )
  kernel_checks.coefficients([term.coefficient for term in terms], len(terms))


def read_rule(text: str) -> Optional[Term]:
  """A rule and its numbers; None if it is a kernel, or nothing."""
  name, _, parameters = (part.strip() for part in text.partition(":"))
  if name == MEDIAN:
    return Term(name, (_number(parameters or "2", text),))
  if name == ANNEALED:
    start, arrow, end = parameters.partition("->")
    if not arrow:
      raise errors.UserError(
        f"kernel {name!r} wants two bandwidths, got {text!r}; write for example"
        f" {name}:10->1"
      )
    return Term(name, (_number(start, text), _number(end, text)))
  return None


def read(text: str) -> List[Term]:
  """The terms of a kernel, `[coefficient*]name:parameters`, joined by `+`."""
  terms = []
  # A plus sign after the `e` of a number (`1e+3`) joins no terms.
  for part in re.split(r"(?<![0-9.][eE])\+", text):
    factor, star, term = part.rpartition("*")
    found = _term(term.strip())
    weight = _number(factor, text) if star else 1.0
    terms.append(found._replace(coefficient=weight))
  return terms


def _term(text: str) -> Term:
  name, colon, parameters = text.partition(":")
  if name not in NAMES and plugins.is_place(text):
    return Term(text)
  if name in (MEDIAN, ANNEALED):
    raise errors.UserError(
      f"kernel {name!r} follows training: it is for mmdrl train, and alone,"
      f" without sums or coefficients, got {text!r}"
    )
  if name not in NAMES:
    raise errors.unknown_name("kernel", name, NAMES)
  if name == GEOMETRIC:
    return Term(name, _exponents(parameters, text) if colon else ())
  if not colon or not parameters.strip():
    raise errors.UserError(
      f"kernel {name!r} wants its parameter after a colon, got {text!r};"
      f" write for example {name}:1"
    )
  if name == MIXTURE:
    return Term(name, _numbers(parameters, text))
  return Term(name, (_number(parameters, text),))


def _exponents(parameters: str, text: str) -> Tuple[float, ...]:
  """The exponents of the narrowest and the widest bandwidth, `-8..8`."""
  span = re.fullmatch(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*", parameters)
  if not span:
    raise errors.UserError(
      f"kernel {GEOMETRIC!r} wants two whole exponents of two, got {text!r};"
      f" write for example {GEOMETRIC}:-8..8"
    )
  return int(span[1]), int(span[2])


def _numbers(parameters: str, text: str) -> Tuple[float, ...]:
  """`8,10,12`, or a range of whole numbers with both ends, `1..10`."""
  span = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", parameters)
  if span:
    return tuple(float(h) for h in range(int(span[1]), int(span[2]) + 1))
  return tuple(_number(number, text) for number in parameters.split(","))


def _number(number: str, text: str) -> float:
  try:
    return float(number)
  except ValueError:
    raise errors.UserError(
      f"kernel {text!r} wants a number where {number.strip()!r} stands"
    ) from None
