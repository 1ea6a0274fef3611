"""All measurements of the paper's theorems, one after the other."""

from typing import Callable, Dict, List

from tf_mmdrl.tabular import (
  claims,
  theory_contraction,
  theory_convergence,
  theory_dimensions,
  theory_metric,
)


def measure(
  mdps: int = 1000,
  on_progress: Callable[[float, str], None] = lambda share, text: None,
) -> claims.Result:
  """Measures every claim.

  Args:
    mdps: how many random processes Theorem 2.1 is tried on.
    on_progress: told the share done and what comes next.

  Returns:
    All claims and all curves.
  """
  measurements: Dict[str, Callable[[], claims.Result]] = {
    "Theorem 1": theory_metric.separation,
    "Theorem 2.1": lambda: theory_contraction.contraction(mdps),
    "Theorem 2.2": theory_contraction.no_contraction,
    "Theorem 3": theory_convergence.convergence,
    "Theorem 3 in R^D": theory_dimensions.dimensions,
    "Moment expansion": theory_metric.expansion,
  }
  rows: List[claims.Claim] = []
  curves: Dict[str, claims.Curves] = {}
  for done, (name, measurement) in enumerate(measurements.items()):
    on_progress(done / len(measurements), name)
    result = measurement()
    rows.extend(result.claims)
    curves.update(result.curves)
  on_progress(1.0, "done")
  return claims.Result(rows, curves)
