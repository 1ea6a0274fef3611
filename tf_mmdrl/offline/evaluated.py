"""What an evaluation found of a policy, ranked and as JSON."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.offline import fitting, laws
from tf_mmdrl.offline.laws import Estimate, Interval


class Evaluated(NamedTuple):
  """What is known of a policy.

  Attributes:
    name: of the policy.
    estimates: by name of the estimator.
    statistics: estimator -> statistic -> number and interval.
    effective_size: of the importance weights; None if there are none.
    warnings: what a reader should know.
    history: looks at the residual of the fit.
    truth: [M] returns that the policy got in the environment, if played.
    part: the number of the reward, if rewards are vectors.
    correlation: [D, D] of the fitted joint returns, if so.
    true_correlation: of those that were played.
  """

  name: str
  estimates: Dict[str, Estimate]
  statistics: Dict[str, Dict[str, Interval]]
  effective_size: Optional[float]
  warnings: List[str]
  history: List[fitting.Look]
  truth: Optional[np.ndarray] = None
  part: Optional[int] = None
  correlation: Optional[List[List[float]]] = None
  true_correlation: Optional[List[List[float]]] = None

  @property
  def title(self) -> str:
    """The policy, and which of its returns this is."""
    return (
      self.name if self.part is None else f"{self.name}, reward {self.part}"
    )


def with_truth(
  found: Sequence[Evaluated], played: np.ndarray
) -> List[Evaluated]:
  """The same with what the policy got: returns [M], or [M, D] of all parts."""
  if played.ndim == 1:
    return [each._replace(truth=played) for each in found]
  even = np.full(len(played), 1 / len(played))
  true = correlation_of(played, even)
  return [
    each._replace(truth=played[:, each.part], true_correlation=true)
    for each in found
  ]


def correlation_of(
  values: np.ndarray, weights: np.ndarray
) -> List[List[float]]:
  """[D, D] correlations of vectors [M, D]; 0 with what does not vary."""
  centred = values - weights @ values
  covariance = (weights[:, None] * centred).T @ centred
  size = np.sqrt(np.diag(covariance))
  scale = np.outer(size, size)
  return np.divide(
    covariance, scale, out=np.zeros_like(covariance), where=scale > 0
  ).tolist()


def ranked(
  found: Sequence[Evaluated], estimator: str, statistic: str
) -> List[Evaluated]:
  """Policies by a statistic of an estimator, the best first."""
  laws.check_statistic(statistic)

  def place(each):  # what is not known comes last
    point = each.statistics[estimator][statistic].point
    return np.isnan(point), -point

  return sorted(found, key=place)


def to_json(found: Evaluated) -> Dict[str, Any]:
  """All numbers of an evaluation; those that are not known are null."""
  content: Dict[str, Any] = {
    "policy": found.name,
    "reward": found.part,
    "effective_sample_size": found.effective_size,
    "warnings": found.warnings,
    "statistics": {
      name: {key: list(value) for key, value in each.items()}
      for name, each in found.statistics.items()
    },
    "residuals": [list(look) for look in found.history],
    "laws": {
      name: {
        "returns": each.grid.tolist(),
        "probabilities": each.law().proper().probabilities.tolist(),
      }
      for name, each in found.estimates.items()
    },
  }
  if found.correlation is not None:
    content["correlation"] = found.correlation
    content["true_correlation"] = found.true_correlation
  if found.truth is not None:
    content["truth"] = {
      "returns": found.truth.tolist(),
      "distances": {
        name: dict(
          zip(("w1", "energy"), laws.distances(each.law(), found.truth))
        )
        for name, each in found.estimates.items()
      },
    }
  return _plain(content)


def _plain(content: Any) -> Any:
  """As JSON has it, which knows neither tuples nor NaN nor infinity."""
  if isinstance(content, dict):
    return {key: _plain(value) for key, value in content.items()}
  if isinstance(content, (list, tuple)):
    return [_plain(value) for value in content]
  if isinstance(content, float) and not np.isfinite(content):
    return None
  return content
