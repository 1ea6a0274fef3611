"""The exponential of a product, which compares every raw moment."""

import dataclasses
from typing import Tuple

import tensorflow as tf

from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops.kernels import kernel


@dataclasses.dataclass(frozen=True)
class ExpProd(kernel.Kernel):
  """exp(<x, y> / sigma^2) (Theorem 1.3): every raw moment, not shift invariant.

  It overflows where |x y| / sigma^2 > 700; choose sigma near the returns' size.
  """

  sigma: float = 1.0
  properties = kernel.Properties(characteristic=True, shift_invariant=False)
  at_zero = 1.0

  def __post_init__(self):
    kernel_checks.positive("sigma", (self.sigma,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    excess = tf.math.expm1(statistic / self.sigma**2)
    return excess, (excess + 1) / self.sigma**2
