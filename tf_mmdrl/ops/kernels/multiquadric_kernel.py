"""The multiquadric kernel."""

import dataclasses
import math
from typing import List, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops import reach as reaches
from tf_mmdrl.ops.kernels import kernel


@dataclasses.dataclass(frozen=True)
class Multiquadric(kernel.Kernel):
  """-sqrt(1 + d2 / h): conditionally positive definite, unbounded, smooth.

  Hardy, "Multiquadric equations of topography and other irregular surfaces",
  1971; for moment matching Killingberg and Langseth, "The Multiquadric Kernel
  for Moment-Matching Distributional Reinforcement Learning", 2023. Hardy writes
  sqrt(c^2 + d2): with h = c^2, ours is minus his over c. With a shape
  parameter, -sqrt(1 + eps^2 d2), h is 1 / eps^2.
  """

  h: float = 1.0
  # Why it contracts: docs/kernels.md. The paper's theorem does not cover it.
  properties = kernel.Properties(
    characteristic=True, shift_invariant=True, contraction_order=1.0
  )
  at_zero = -1.0

  def __post_init__(self):
    kernel_checks.positive("bandwidths", (self.h,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    ratio = statistic / self.h
    root = tf.sqrt(1 + ratio)
    return -ratio / (1 + root), -1 / (2 * self.h * root)

  def reach_terms(self) -> List[reaches.Term]:
    """See the base class."""
    width = math.sqrt(self.h)
    return [reaches.Tail(1 / width, width, lambda u: u / np.sqrt(1 + u * u))]
