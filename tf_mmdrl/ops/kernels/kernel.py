"""What a kernel is: a function of one statistic of its two arguments.

The statistic is the squared distance `d2 = |x - y|^2` if the kernel is shift
invariant, the inner product `<x, y>` otherwise. A kernel states its excess over
its value at statistic zero and its slope, both at once (they share their
exponentials). The constant is kept apart because no discrepancy between
probability distributions depends on it, and float precision should not be spent
on it.
"""

import abc
import dataclasses
import functools
import math
from typing import List, Optional, Tuple

import tensorflow as tf

from tf_mmdrl.ops import reach as reaches


@dataclasses.dataclass(frozen=True)
class Properties:
  """What the paper's theorems ask of a kernel.

  Attributes:
    characteristic: the MMD tells any two (suitably integrable) distributions
      apart (Theorem 1).
    shift_invariant: k(x + c, y + c) = k(x, y).
    scale_order: alpha with k(c x, c y) = |c|^alpha k(x, y), or None.
    contraction_order: alpha such that the distributional Bellman operator is a
      gamma^(alpha / 2) contraction in this kernel's MMD (as in Theorem 2.1), or
      None.
  """

  characteristic: bool
  shift_invariant: bool
  scale_order: Optional[float] = None
  contraction_order: Optional[float] = None


class Kernel(abc.ABC):
  """A kernel k(x, y); see the module for `excess` and `slope`."""

  @property
  @abc.abstractmethod
  def properties(self) -> Properties:
    """Which conditions of the paper's theorems the kernel meets."""

  @property
  def at_zero(self) -> float:
    """k at statistic zero."""
    return 0.0

  @property
  def has_cusp(self) -> bool:
    """Whether the slope has no bound as particles coincide, and jumps to 0.

    Rounding then may not take a distance of 0 for another (see `pairwise`).
    """
    return False

  @functools.cached_property
  def reach(self) -> float:
    """The distance beyond which its pull stays below 1 % of its largest value.

    The pull is |dk(x, y) / dx|, by which y moves a particle x; its largest
    value is that over all distances. A Gaussian of bandwidth h reaches
    2.5255 sqrt(h), Laplace h log(100). Mixtures and sums are solved
    numerically, once for each kernel. The reach is infinite
    - where the pull never fades: smooth energy, multiquadric, unrectified with
      alpha >= 1;
    - for unrectified with alpha < 1, whose pull d^(alpha - 1) has no largest
      value and fades like a power;
    - for exp_prod, which is no function of a distance;
    - for bandwidths that are tensors, because they follow the data;
    - for a sum with such a term, unless its coefficient is so small that it
      pulls with less than 1 % of what the others do.
    """
    terms = self.reach_terms()
    return math.inf if terms is None else reaches.of_terms(terms)

  def reach_terms(self) -> Optional[List[reaches.Term]]:
    """The kernel as a sum of terms that fade or stay; None if it is none."""
    return None

  def for_float32(self) -> "Kernel":
    """The same kernel, of float64 statistics and for results in float32.

    A kernel whose functions are slow returns one of faster ones; errors of its
    values should then be smooth, because they cancel as the values do.
    """
    return self

  @abc.abstractmethod
  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """k - k(0) and dk/dstatistic.

    Args:
      statistic: squared distances, or inner products, of any shape.

    Returns:
      Two tensors of the statistic's shape. Where the derivative of an unsmooth
      kernel does not exist (coinciding points) the slope is 0, the symmetric
      choice.
    """

  def __call__(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """k(x, y), elementwise over broadcastable scalars."""
    return self.at_zero + self.excess_and_slope(self._statistic(x, y))[0]

  def gradient(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """dk(x, y) / dx, elementwise over broadcastable scalars."""
    slope = self.excess_and_slope(self._statistic(x, y))[1]
    if self.properties.shift_invariant:
      return 2 * (x - y) * slope
    return y * slope

  def _statistic(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    if self.properties.shift_invariant:
      return tf.math.squared_difference(x, y)
    return tf.multiply(x, y)


def fall_and_exponential(s: tf.Tensor) -> Tuple[tf.Tensor, ...]:
  """exp(-s) - 1 and exp(-s), each with its own digits, of one exponential.

  One from the other, the first would lose them near 0 and the second far from
  it, where it is all that pulls.
  """
  # Never below 0, which keeps XLA from making each square an exponential again.
  exponential = tf.nn.relu(tf.exp(-s))
  series = tf.zeros_like(s)
  for divisor in (5, 4, 3, 2):
    series = (s / divisor) * (1 - series)
  fall = tf.where(s < 0.01, s * (series - 1), exponential - 1)
  return fall, exponential
