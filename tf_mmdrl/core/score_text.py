"""How scores are written for people, whatever their size."""

from typing import Optional, SupportsFloat

_SMALL, _LARGE = 0.05, 1e7


def number(value: Optional[SupportsFloat]) -> str:
  """A score: 8.56, and with four digits where two decimals do not fit.

  Args:
    value: the score, or how sure one is of it; None if it is not known.

  Returns:
    Text: "475.00", "0.004567", "1e+37"; "-" for None.
  """
  if value is None:
    return "-"
  value = float(value)
  if value == 0 or _SMALL <= abs(value) < _LARGE:
    return f"{value:.2f}"
  return f"{value:.4g}"


def with_error(value: SupportsFloat, error: SupportsFloat) -> str:
  """A mean score and its standard error."""
  return f"{number(value)} +- {number(error)} (standard error)"
