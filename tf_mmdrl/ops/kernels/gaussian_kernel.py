"""Gaussian kernels, their mixtures, and the tails that they may have."""

import dataclasses
import math
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernel_checks
from tf_mmdrl.ops import reach as reaches
from tf_mmdrl.ops.kernels import kernel, rounded_distance


@dataclasses.dataclass(frozen=True)
class GaussianMixture(kernel.Kernel):
  """sum_i c_i exp(-d2 / h_i) - t_i E|d + noise_i|, noise_i ~ N(0, h_i / 2).

  The first part is MMDQN's (Nguyen-Tang, Gupta and Venkatesh, 2021): the
  sum, not the mean, as in the authors' code. The second part, made for this
  library, gives the kernel a tail: it is the absolute value, whose MMD is the
  energy distance, rounded off at the width of the Gaussian,

    E|d + noise| = d erf(d / sqrt(h)) + sqrt(h / pi) exp(-d2 / h),

  and so the energy distance between distributions that the noise has blurred.
  Its pull never fades, and it costs nothing where the Gaussians are computed in
  the frequency domain.

  Attributes:
    bandwidths: the h_i; floats, or a tensor [K] or [B, K] (one set for each
      example) that changes as training goes on.
    coefficients: the c_i, non-negative; 1 each if not given.
    tails: the t_i, non-negative; 0 each if not given.
    seven_digits: whether seven digits of the tails are enough, and fast.
  """

  bandwidths: Union[Tuple[float, ...], tf.Tensor]
  coefficients: Tuple[float, ...] = ()
  tails: Tuple[float, ...] = ()
  seven_digits: bool = False

  @property
  def properties(self) -> kernel.Properties:
    """A contraction of order 1 if there are tails only (docs/kernels.md)."""
    order = None if any(self.coefficients) else 1.0
    return kernel.Properties(
      characteristic=True, shift_invariant=True, contraction_order=order
    )

  def __post_init__(self):
    if not tf.is_tensor(self.bandwidths):
      bandwidths = kernel_checks.positive("bandwidths", self.bandwidths)
      object.__setattr__(self, "bandwidths", bandwidths)
    count = np.shape(self.bandwidths)[-1]
    coefficients = tuple(self.coefficients or (1.0,) * count)
    tails = tuple(self.tails or (0.0,) * count)
    both = kernel_checks.coefficients(coefficients + tails, 2 * count)
    object.__setattr__(self, "coefficients", both[:count])
    object.__setattr__(self, "tails", both[count:])
    if any(tails) and tf.is_tensor(self.bandwidths):
      raise errors.UserError("tails want bandwidths that are numbers")

  @property
  def at_zero(self) -> float:
    """k(x, x)."""
    total = sum(self.coefficients)
    for h, tail in zip(self.bandwidths, self.tails) if any(self.tails) else ():
      total -= tail * math.sqrt(h / math.pi)
    return total

  def by_width(self, factor: float) -> List["GaussianMixture"]:
    """Mixtures that add up to this one, each of bandwidths of alike size.

    Args:
      factor: the most by which bandwidths of one mixture differ.

    Returns:
      The mixtures, the narrowest first; bandwidths are numbers.
    """
    parts = sorted(zip(self.bandwidths, self.coefficients, self.tails))
    groups: List[list] = []
    for part in parts:
      if not groups or part[0] > factor * groups[-1][0][0]:
        groups.append([])
      groups[-1].append(part)
    wanted = [group for group in groups if any(c or t for _, c, t in group)]
    return [
      GaussianMixture(bandwidths, coefficients, tails)
      for bandwidths, coefficients, tails in (zip(*group) for group in wanted)
    ]

  def for_float32(self) -> "GaussianMixture":
    """See the base class."""
    return dataclasses.replace(self, seven_digits=True)

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    excess = tf.zeros_like(statistic)
    slope = tf.zeros_like(statistic)
    for coefficient, h, fall, exponential in self._exponentials(statistic):
      excess += coefficient * fall
      slope -= (coefficient / h) * exponential
    if any(self.tails):
      for h, tail in zip(self.bandwidths, self.tails):
        if tail:
          more, steeper = rounded_distance.excess_and_slope(
            statistic, h, for_float32=self.seven_digits
          )
          excess -= tail * more
          slope -= tail * steeper
    return excess, slope

  def reach_terms(self) -> Optional[List[reaches.Term]]:
    """See the base class."""
    if tf.is_tensor(self.bandwidths):
      return None
    parts = zip(self.bandwidths, self.coefficients, self.tails)
    found: List[reaches.Term] = []
    for h, coefficient, tail in parts:
      found.append(reaches.Decay(coefficient, math.sqrt(h), 2.0))
      found.append(reaches.Tail(tail, math.sqrt(h), np.vectorize(math.erf)))
    return found

  def _exponentials(self, d2):
    """Yields (c, h, exp(-d2/h) - 1, exp(-d2/h)), squaring where 2h is there.

    The bandwidths 1 to 10 need five exponentials: exp(-d2/5) is the square of
    exp(-d2/10), and (1 + e)^2 - 1 = e (e + 2).
    """
    if tf.is_tensor(self.bandwidths):
      bandwidths = tf.unstack(tf.cast(self.bandwidths, d2.dtype), axis=-1)
      for coefficient, h in zip(self.coefficients, bandwidths):
        if h.shape.rank == 1:  # [B] bandwidths against [B, ...] statistics
          h = tf.reshape(h, [-1] + [1] * (d2.shape.rank - 1))
        yield coefficient, h, *kernel.fall_and_exponential(d2 / h)
      return
    known: Dict[float, Tuple[tf.Tensor, tf.Tensor]] = {}
    pairs = sorted(zip(self.bandwidths, self.coefficients), reverse=True)
    for h, coefficient in pairs:
      if not coefficient:  # a tail only, which has no exponential
        continue
      if h not in known:
        if 2 * h in known:
          fall, exponential = known[2 * h]
          known[h] = fall * (fall + 2), exponential * exponential
        else:
          known[h] = kernel.fall_and_exponential(d2 * (1 / h))
      yield coefficient, h, *known[h]


def gaussian(h: float) -> GaussianMixture:
  """exp(-d2 / h); h is 2 sigma^2 of a Gaussian with deviation sigma."""
  return GaussianMixture((h,))


def smooth_energy(h: float = 1.0) -> GaussianMixture:
  """-E|d + N(0, h / 2)|: the energy distance's kernel, rounded off at 0.

  Made for this library; `GaussianMixture` has it in closed form.

  Args:
    h: the width within which it is round, as a Gaussian's bandwidth.

  Returns:
    The kernel.
  """
  return GaussianMixture((h,), (0.0,), (1.0,))


def merged(
  mixtures: Sequence[GaussianMixture], coefficients
) -> GaussianMixture:
  """sum_i c_i k_i of mixtures whose bandwidths are numbers, as one mixture."""
  pairs = list(zip(mixtures, coefficients))
  return GaussianMixture(
    tuple(h for mixture, _ in pairs for h in mixture.bandwidths),
    tuple(c * a for mixture, c in pairs for a in mixture.coefficients),
    tuple(c * t for mixture, c in pairs for t in mixture.tails),
  )


def gaussian_mixture(
  hs: Sequence[float] = tuple(range(1, 11)),
) -> GaussianMixture:
  """sum over h of exp(-d2 / h); the paper's Atari kernel by default."""
  return GaussianMixture(tuple(hs))


def geometric_mixture(low: int = -8, high: int = 8) -> GaussianMixture:
  """sum over h = 2^low, 2^(low + 1), ... 2^high of sqrt(h) exp(-d2 / h).

  The kernel of MD3QN (Zhang et al., "Distributional Reinforcement Learning for
  Multi-Dimensional Reward Functions", 2021), with 17 bandwidths from 2^-8 to
  2^8. The coefficients are sqrt(h) as published, without a further factor: each
  term then has the same largest pull, sqrt(2 / e), and together they pull with
  less than 2 sqrt(pi) / log(2) = 5.11 at any distance, for any range. The
  largest pull is 5.07 by default; that of `gaussian_mixture()` is 3.71. Between
  the distances 2^(low / 2) and 2^(high / 2 - 2) the pull is above 3/4 of 5.11,
  so that the kernel acts like -5.11 |d|; it is smooth below them and fades
  beyond.

  Args:
    low: log2 of the narrowest bandwidth.
    high: log2 of the widest one.

  Returns:
    The kernel.
  """
  kernel_checks.exponents(low, high)
  hs = tuple(2.0**exponent for exponent in range(low, high + 1))
  return GaussianMixture(hs, tuple(math.sqrt(h) for h in hs))
