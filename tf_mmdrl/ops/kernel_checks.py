"""What the numbers of kernels may be; TensorFlow is not needed to say so."""

import math
from typing import Sequence, Tuple

from tf_mmdrl.core import errors


def positive(name: str, values: Sequence[float]) -> Tuple[float, ...]:
  """Checks bandwidths and their like."""
  values = tuple(float(value) for value in values)
  if not values:
    raise errors.UserError(f"{name} must hold at least one value, got none")
  for index, value in enumerate(values):
    if not (value > 0 and math.isfinite(value)):
      raise errors.UserError(
        f"{name} must be positive and finite, got {value} at index {index};"
        " pass h > 0"
      )
  return values


def coefficients(values: Sequence[float], count: int) -> Tuple[float, ...]:
  """Checks the coefficients of a sum of `count` kernels."""
  values = tuple(float(value) for value in values)
  if len(values) != count or not any(values):
    raise errors.UserError(
      f"one coefficient is wanted for each of the {count} kernels, not all"
      f" zero; got {values}"
    )
  for index, value in enumerate(values):
    if not (value >= 0 and math.isfinite(value)):
      raise errors.UserError(
        f"coefficients must be non-negative and finite, got {value} at index"
        f" {index}; a kernel with a negative part is no kernel"
      )
  return values


def alpha(value: float) -> None:
  """Checks the power of the unrectified kernel."""
  if not 0 < value <= 2:
    raise errors.UserError(
      f"alpha must lie in (0, 2], got {value}; the paper uses 1"
    )


def exponents(low: float, high: float) -> None:
  """Checks the span of a geometric mixture."""
  if not low <= high:
    raise errors.UserError(
      f"the exponents must go up, got {low:g}..{high:g}; write for example"
      " -8..8"
    )
