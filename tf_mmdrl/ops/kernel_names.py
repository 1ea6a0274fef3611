"""Kernels by name, as the command line and configurations write them.

`gaussian:8`, `gaussian_mixture:8,10,12`, `gaussian_mixture:1..10`,
`gaussian_geometric` (or with other exponents of two than its own, as in
`gaussian_geometric:-8..8`), `smooth_energy:1`, `unrectified:1`, `laplace:2`,
`multiquadric:1`, `exp_prod:3`, and sums of these with coefficients:
`0.5*gaussian:1+unrectified:1`. Alone, rules that make a Gaussian as training
goes on: `gaussian_median` (a bandwidth of 2 x the median of the squared
distances; `gaussian_median:1` for another factor) and `gaussian_annealed:10->1`
(over the run). `package.module:NAME` is a kernel of your own.
"""

import re
from typing import Callable, Dict, List, Union

from tf_mmdrl.core import errors, plugins
from tf_mmdrl.ops import bandwidths, kernels

_ONE_PARAMETER: Dict[str, Callable[[float], kernels.Kernel]] = {
  "gaussian": kernels.gaussian,
  "unrectified": kernels.unrectified,
  "laplace": kernels.laplace,
  "multiquadric": kernels.multiquadric,
  "exp_prod": kernels.exp_prod,
  "smooth_energy": kernels.smooth_energy,
}
_MIXTURE, _GEOMETRIC = "gaussian_mixture", "gaussian_geometric"
_MEDIAN, _ANNEALED = "gaussian_median", "gaussian_annealed"
NAMES = (*_ONE_PARAMETER, _MIXTURE, _GEOMETRIC, _MEDIAN, _ANNEALED)


def parse_rule(
  text: str, num_updates: int
) -> Union[kernels.Kernel, bandwidths.KernelRule]:
  """The kernel, or the rule that makes one, that `text` names.

  Args:
    text: a rule, or what `parse` takes.
    num_updates: how many updates the run has, for annealing.

  Returns:
    The kernel or the rule.
  """
  name, _, parameters = (part.strip() for part in text.partition(":"))
  if name == _MEDIAN:
    return bandwidths.median(_number(parameters or "2", text))
  if name == _ANNEALED:
    start, arrow, end = parameters.partition("->")
    if not arrow:
      raise errors.UserError(
        f"kernel {name!r} wants two bandwidths, got {text!r}; write for example"
        f" {name}:10->1"
      )
    return bandwidths.annealed(
      _number(start, text), _number(end, text), num_updates
    )
  kernel = parse(text)
  if not kernel.properties.characteristic:
    raise errors.UserError(
      "training wants a kernel that tells distributions apart (characteristic),"
      f" got {text!r}; for unrectified, alpha in (0, 2)"
    )
  return kernel


def parse(text: str) -> kernels.Kernel:
  """The kernel that `text` names.

  Args:
    text: one term `[coefficient*]name:parameters`, or several joined by `+`.

  Returns:
    The kernel; a `Sum` if there are several terms or a coefficient.
  """
  terms, coefficients = [], []
  # A plus sign after the `e` of a number (`1e+3`) joins no terms.
  for part in re.split(r"(?<![0-9.][eE])\+", text):
    factor, star, term = part.rpartition("*")
    terms.append(_term(term.strip()))
    coefficients.append(_number(factor, text) if star else 1.0)
  if len(terms) == 1 and coefficients == [1.0]:
    return terms[0]
  return kernels.weighted_sum(terms, coefficients)


def _term(text: str) -> kernels.Kernel:
  name, colon, parameters = text.partition(":")
  if name not in NAMES and plugins.is_place(text):
    return plugins.load("kernel", text, kernels.Kernel)
  if name in (_MEDIAN, _ANNEALED):
    raise errors.UserError(
      f"kernel {name!r} follows training: it is for mmdrl train, and alone,"
      f" without sums or coefficients, got {text!r}"
    )
  if name not in NAMES:
    raise errors.unknown_name("kernel", name, NAMES)
  if name == _GEOMETRIC:
    return (
      _geometric(parameters, text) if colon else kernels.geometric_mixture()
    )
  if not colon or not parameters.strip():
    raise errors.UserError(
      f"kernel {name!r} wants its parameter after a colon, got {text!r};"
      f" write for example {name}:1"
    )
  if name == _MIXTURE:
    return kernels.gaussian_mixture(_numbers(parameters, text))
  return _ONE_PARAMETER[name](_number(parameters, text))


def _geometric(parameters: str, text: str) -> kernels.Kernel:
  """The exponents of the narrowest and the widest bandwidth, `-8..8`."""
  span = re.fullmatch(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*", parameters)
  if not span:
    raise errors.UserError(
      f"kernel {_GEOMETRIC!r} wants two whole exponents of two, got {text!r};"
      f" write for example {_GEOMETRIC}:-8..8"
    )
  return kernels.geometric_mixture(int(span[1]), int(span[2]))


def _numbers(parameters: str, text: str) -> List[float]:
  """`8,10,12`, or a range of whole numbers with both ends, `1..10`."""
  span = re.fullmatch(r"\s*(\d+)\s*\.\.\s*(\d+)\s*", parameters)
  if span:
    return [float(h) for h in range(int(span[1]), int(span[2]) + 1)]
  return [_number(number, text) for number in parameters.split(",")]


def _number(number: str, text: str) -> float:
  try:
    return float(number)
  except ValueError:
    raise errors.UserError(
      f"kernel {text!r} wants a number where {number.strip()!r} stands"
    ) from None
