"""The unrectified kernel, whose MMD of order 1 is the energy distance."""

import dataclasses
from typing import List, Optional, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops import reach as reaches
from tf_mmdrl.ops.kernels import kernel


@dataclasses.dataclass(frozen=True)
class Unrectified(kernel.Kernel):
  """-|x - y|^alpha (Theorem 1.2); alpha = 2 only tells means apart.

  With alpha = 1 the squared MMD is the energy distance (Szekely and Rizzo,
  "Energy statistics: a class of statistics based on distances", 2013).
  """

  alpha: float = 1.0

  def __post_init__(self):
    kernel_checks.alpha(self.alpha)

  @property
  def properties(self) -> kernel.Properties:
    """A metric's kernel below order 2; a contraction at any order."""
    return kernel.Properties(
      characteristic=self.alpha < 2,
      shift_invariant=True,
      scale_order=self.alpha,
      contraction_order=self.alpha,
    )

  @property
  def has_cusp(self) -> bool:
    """At any order but 2."""
    return self.alpha < 2

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    if self.alpha == 2:
      return -statistic, -tf.ones_like(statistic)
    positive = statistic > 0
    safe = tf.where(positive, statistic, tf.ones_like(statistic))
    size = power(safe, self.alpha / 2)
    size = tf.where(positive, size, tf.zeros_like(size))
    return -size, -(self.alpha / 2) * size / safe

  def reach_terms(self) -> Optional[List[reaches.Term]]:
    """See the base class; only the pull of order 1 has a limit."""
    return [reaches.Tail(1.0, 1.0, np.ones_like)] if self.alpha == 1 else None


def power(values: tf.Tensor, exponent: float) -> tf.Tensor:
  """Values to a power; by roots where they do, which are faster."""
  root = tf.sqrt(values)
  if exponent == 0.5:
    return root
  if exponent == 0.25:
    return tf.sqrt(root)
  if exponent == 0.75:
    return root * tf.sqrt(root)
  return values**exponent
