"""The Laplace kernel."""

import dataclasses
from typing import List, Optional, Tuple

import tensorflow as tf

from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops import reach as reaches
from tf_mmdrl.ops.kernels import kernel


@dataclasses.dataclass(frozen=True)
class Laplace(kernel.Kernel):
  """exp(-|x - y| / h), the Laplace or exponential kernel.

  It is the Matern kernel of smoothness 1/2 (Rasmussen and Williams, "Gaussian
  Processes for Machine Learning", 2006, Section 4.2), and characteristic
  (Sriperumbudur et al., "Hilbert space embeddings and metrics on probability
  measures", 2010).
  """

  h: float = 1.0
  properties = kernel.Properties(characteristic=True, shift_invariant=True)
  at_zero = 1.0
  has_cusp = True

  def __post_init__(self):
    kernel_checks.positive("bandwidths", (self.h,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    positive = statistic > 0
    distance = tf.sqrt(tf.where(positive, statistic, tf.ones_like(statistic)))
    excess, exponential = kernel.fall_and_exponential(distance / self.h)
    excess = tf.where(positive, excess, tf.zeros_like(distance))
    slope = -exponential / (2 * self.h * distance)
    return excess, tf.where(positive, slope, tf.zeros_like(slope))

  def reach_terms(self) -> Optional[List[reaches.Term]]:
    """See the base class."""
    return [reaches.Decay(1.0, self.h, 1.0)]
