"""Sums of kernels."""

import dataclasses
from typing import List, Optional, Sequence, Tuple

import tensorflow as tf

from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops import reach as reaches
from tf_mmdrl.ops.kernels import kernel


@dataclasses.dataclass(frozen=True)
class Sum(kernel.Kernel):
  """sum_i c_i k_i with c_i >= 0 (Theorem 2.1)."""

  terms: Tuple[kernel.Kernel, ...]
  coefficients: Tuple[float, ...]

  def __post_init__(self):
    object.__setattr__(self, "terms", tuple(self.terms))
    coefficients = kernel_checks.coefficients(
      self.coefficients, len(self.terms)
    )
    object.__setattr__(self, "coefficients", coefficients)

  @property
  def properties(self) -> kernel.Properties:
    """Characteristic if a term is, shift invariant if all terms are."""
    terms = [
      term.properties
      for term, coefficient in zip(self.terms, self.coefficients)
      if coefficient
    ]
    orders = [t.contraction_order for t in terms if t.contraction_order]
    scales = {term.scale_order for term in terms}
    return kernel.Properties(
      characteristic=any(term.characteristic for term in terms),
      shift_invariant=all(term.shift_invariant for term in terms),
      scale_order=scales.pop() if len(scales) == 1 else None,
      contraction_order=min(orders) if len(orders) == len(terms) else None,
    )

  @property
  def at_zero(self) -> float:
    """k(x, x), if shift invariant."""
    return sum(c * k.at_zero for c, k in zip(self.coefficients, self.terms))

  @property
  def has_cusp(self) -> bool:
    """If a term has one."""
    return any(
      term.has_cusp
      for term, coefficient in zip(self.terms, self.coefficients)
      if coefficient
    )

  def __call__(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """k(x, y), elementwise; the terms may differ in their statistic."""
    return sum(c * k(x, y) for c, k in zip(self.coefficients, self.terms))

  def gradient(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """dk(x, y) / dx, elementwise."""
    return sum(
      c * k.gradient(x, y) for c, k in zip(self.coefficients, self.terms)
    )

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class; for terms that share their statistic."""
    parts = [term.excess_and_slope(statistic) for term in self.terms]
    return tuple(
      tf.add_n([c * part for c, part in zip(self.coefficients, column)])
      for column in zip(*parts)
    )

  def reach_terms(self) -> Optional[List[reaches.Term]]:
    """See the base class."""
    found: List[reaches.Term] = []
    for coefficient, term in zip(self.coefficients, self.terms):
      if not coefficient:
        continue
      terms = term.reach_terms()
      if terms is None:
        return None
      found += [part._replace(size=coefficient * part.size) for part in terms]
    return found


def weighted_sum(
  terms: Sequence[kernel.Kernel], coefficients: Optional[Sequence[float]] = None
) -> Sum:
  """sum_i c_i k_i; coefficients default to 1."""
  if coefficients is None:
    coefficients = (1.0,) * len(terms)
  return Sum(tuple(terms), tuple(coefficients))
