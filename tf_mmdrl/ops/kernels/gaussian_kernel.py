"""Kernels on returns, with their derivatives and what theory says of them.

A kernel here is a function of one statistic of its two arguments: the squared
distance `d2 = |x - y|^2` if it is shift invariant, the inner product `<x, y>`
otherwise. A kernel states its excess over its value at statistic zero and its
slope, both at once (they share their exponentials). The constant is kept apart
because no discrepancy between probability distributions sees it, and float
precision should not be spent on it.
"""

import abc
import dataclasses
import functools
import math
from typing import Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
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
    """What the theorems say of it."""

  @property
  def at_zero(self) -> float:
    """k at statistic zero."""
    return 0.0

  @functools.cached_property
  def reach(self) -> float:
    """The distance beyond which its pull stays below 1 % of its largest value.

    The pull is |dk(x, y) / dx|, by which y moves a particle x; its largest
    value is that over all distances. A Gaussian of bandwidth h reaches
    2.5255 sqrt(h), Laplace h log(100). Mixtures and sums are solved
    numerically, once for each kernel. The reach is infinite
    - where the pull never fades: multiquadric, unrectified with alpha >= 1;
    - for unrectified with alpha < 1, whose pull d^(alpha - 1) has no largest
      value and fades like a power;
    - for exp_prod, which is no function of a distance;
    - for bandwidths that are tensors, because they follow the data;
    - for a sum with such a term, unless the term's coefficient is 0.
    """
    decays = self._decays()
    return math.inf if decays is None else reaches.of_decays(decays)

  def _decays(self) -> Optional[List[reaches.Decay]]:
    """The kernel as a sum of terms that fade, or None if it is no such sum."""
    return None

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


def _positive(name: str, values: Sequence[float]) -> Tuple[float, ...]:
  values = tuple(float(value) for value in values)
  if not values:
    raise errors.UserError(f"{name} must hold at least one value, got none")
  for index, value in enumerate(values):
    if not (value > 0 and math.isfinite(value)):
      raise errors.UserError(
        f"{name} must be positive and finite, got {value} at index {index};"
        " pass h > 0"
      )
  return values


def _coefficients(values: Sequence[float], count: int) -> Tuple[float, ...]:
  """Checks the coefficients of a sum of `count` kernels."""
  values = tuple(float(value) for value in values)
  if len(values) != count or not any(values):
    raise errors.UserError(
      f"one coefficient is wanted for each of the {count} kernels, not all"
      f" zero; got {values}"
    )
  for index, value in enumerate(values):
    if not (value >= 0 and math.isfinite(value)):
      raise errors.UserError(
        f"coefficients must be non-negative and finite, got {value} at index"
        f" {index}; a kernel with a negative part is no kernel"
      )
  return values


@dataclasses.dataclass(frozen=True)
class GaussianMixture(Kernel):
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
  """

  bandwidths: Union[Tuple[float, ...], tf.Tensor]
  coefficients: Tuple[float, ...] = ()
  tails: Tuple[float, ...] = ()

  @property
  def properties(self) -> Properties:
    """A contraction of order 1 if there are tails only (docs/kernels.md)."""
    order = None if any(self.coefficients) else 1.0
    return Properties(
      characteristic=True, shift_invariant=True, contraction_order=order
    )

  def __post_init__(self):
    if not tf.is_tensor(self.bandwidths):
      bandwidths = _positive("bandwidths", self.bandwidths)
      object.__setattr__(self, "bandwidths", bandwidths)
    count = np.shape(self.bandwidths)[-1]
    coefficients = tuple(self.coefficients or (1.0,) * count)
    tails = tuple(self.tails or (0.0,) * count)
    both = _coefficients(coefficients + tails, 2 * count)
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

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    excess = tf.zeros_like(statistic)
    slope = tf.zeros_like(statistic)
    for coefficient, h, exponential in self._exponentials(statistic):
      excess += coefficient * exponential
      slope -= (coefficient / h) * (exponential + 1)
    if any(self.tails):
      distance = tf.sqrt(statistic)
      for h, tail in zip(self.bandwidths, self.tails):
        if tail:
          more, steeper = _rounded_distance(statistic, distance, h)
          excess -= tail * more
          slope -= tail * steeper
    return excess, slope

  def _decays(self) -> Optional[List[reaches.Decay]]:
    if tf.is_tensor(self.bandwidths) or any(self.tails):
      return None
    return [
      reaches.Decay(coefficient, math.sqrt(h), 2.0)
      for h, coefficient in zip(self.bandwidths, self.coefficients)
    ]

  def _exponentials(self, d2):
    """Yields (c, h, exp(-d2/h) - 1), squaring where 2h is there already.

    The bandwidths 1 to 10 need five exponentials: exp(-d2/5) is the square of
    exp(-d2/10), and (1 + e)^2 - 1 = e (e + 2).
    """
    if tf.is_tensor(self.bandwidths):
      bandwidths = tf.unstack(tf.cast(self.bandwidths, d2.dtype), axis=-1)
      for coefficient, h in zip(self.coefficients, bandwidths):
        if h.shape.rank == 1:  # [B] bandwidths against [B, ...] statistics
          h = tf.reshape(h, [-1] + [1] * (d2.shape.rank - 1))
        yield coefficient, h, tf.math.expm1(-d2 / h)
      return
    known: Dict[float, tf.Tensor] = {}
    pairs = sorted(zip(self.bandwidths, self.coefficients), reverse=True)
    for h, coefficient in pairs:
      if h not in known:
        wider = known.get(2 * h)
        known[h] = (
          tf.math.expm1(d2 * (-1 / h)) if wider is None else wider * (wider + 2)
        )
      yield coefficient, h, known[h]


def _rounded_distance(d2, distance, h: float) -> Tuple[tf.Tensor, tf.Tensor]:
  """E|d + N(0, h / 2)| less its value at 0, and its derivative in d2."""
  ratio = distance / math.sqrt(h)
  erf = tf.math.erf(ratio)
  excess = distance * erf + math.sqrt(h / math.pi) * tf.math.expm1(-d2 / h)
  # erf(r) / 2d, which at 0 is 1 / sqrt(pi h).
  near = ratio < 1e-4
  safe = tf.where(near, tf.ones_like(distance), distance)
  at_zero = tf.fill(tf.shape(d2), tf.cast(1 / math.sqrt(math.pi * h), d2.dtype))
  return excess, tf.where(near, at_zero, erf / (2 * safe))


@dataclasses.dataclass(frozen=True)
class Unrectified(Kernel):
  """-|x - y|^alpha (Theorem 1.2); alpha = 2 only tells means apart.

  With alpha = 1 the squared MMD is the energy distance (Szekely and Rizzo,
  "Energy statistics: a class of statistics based on distances", 2013).
  """

  alpha: float = 1.0

  def __post_init__(self):
    if not 0 < self.alpha <= 2:
      raise errors.UserError(
        f"alpha must lie in (0, 2], got {self.alpha}; the paper uses 1"
      )

  @property
  def properties(self) -> Properties:
    """A metric's kernel below order 2; a contraction at any order."""
    return Properties(
      characteristic=self.alpha < 2,
      shift_invariant=True,
      scale_order=self.alpha,
      contraction_order=self.alpha,
    )

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    if self.alpha == 2:
      return -statistic, -tf.ones_like(statistic)
    positive = statistic > 0
    safe = tf.where(positive, statistic, tf.ones_like(statistic))
    power = tf.sqrt(safe) if self.alpha == 1 else safe ** (self.alpha / 2)
    power = tf.where(positive, power, tf.zeros_like(power))
    return -power, -(self.alpha / 2) * power / safe


@dataclasses.dataclass(frozen=True)
class Laplace(Kernel):
  """exp(-|x - y| / h), the Laplace or exponential kernel.

  It is the Matern kernel of smoothness 1/2 (Rasmussen and Williams, "Gaussian
  Processes for Machine Learning", 2006, Section 4.2), and characteristic
  (Sriperumbudur et al., "Hilbert space embeddings and metrics on probability
  measures", 2010).
  """

  h: float = 1.0
  properties = Properties(characteristic=True, shift_invariant=True)
  at_zero = 1.0

  def __post_init__(self):
    _positive("bandwidths", (self.h,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    positive = statistic > 0
    distance = tf.sqrt(tf.where(positive, statistic, tf.ones_like(statistic)))
    excess = tf.where(
      positive, tf.math.expm1(-distance / self.h), tf.zeros_like(distance)
    )
    slope = -(excess + 1) / (2 * self.h * distance)
    return excess, tf.where(positive, slope, tf.zeros_like(slope))

  def _decays(self) -> Optional[List[reaches.Decay]]:
    return [reaches.Decay(1.0, self.h, 1.0)]


@dataclasses.dataclass(frozen=True)
class Multiquadric(Kernel):
  """-sqrt(1 + d2 / h): conditionally positive definite, unbounded, smooth.

  Hardy, "Multiquadric equations of topography and other irregular surfaces",
  1971; for moment matching Killingberg and Langseth, "The Multiquadric Kernel
  for Moment-Matching Distributional Reinforcement Learning", 2023. Hardy writes
  sqrt(c^2 + d2): with h = c^2, ours is minus his over c. With a shape
  parameter, -sqrt(1 + eps^2 d2), h is 1 / eps^2.
  """

  h: float = 1.0
  # Why it contracts: docs/kernels.md. The paper's theorem does not cover it.
  properties = Properties(
    characteristic=True, shift_invariant=True, contraction_order=1.0
  )
  at_zero = -1.0

  def __post_init__(self):
    _positive("bandwidths", (self.h,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    ratio = statistic / self.h
    root = tf.sqrt(1 + ratio)
    return -ratio / (1 + root), -1 / (2 * self.h * root)


@dataclasses.dataclass(frozen=True)
class ExpProd(Kernel):
  """exp(<x, y> / sigma^2) (Theorem 1.3): every raw moment, not shift invariant.

  It overflows where |x y| / sigma^2 > 700; choose sigma near the returns' size.
  """

  sigma: float = 1.0
  properties = Properties(characteristic=True, shift_invariant=False)
  at_zero = 1.0

  def __post_init__(self):
    _positive("sigma", (self.sigma,))

  def excess_and_slope(self, statistic: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """See the base class."""
    excess = tf.math.expm1(statistic / self.sigma**2)
    return excess, (excess + 1) / self.sigma**2


@dataclasses.dataclass(frozen=True)
class Sum(Kernel):
  """sum_i c_i k_i with c_i >= 0 (Theorem 2.1)."""

  terms: Tuple[Kernel, ...]
  coefficients: Tuple[float, ...]

  def __post_init__(self):
    object.__setattr__(self, "terms", tuple(self.terms))
    coefficients = _coefficients(self.coefficients, len(self.terms))
    object.__setattr__(self, "coefficients", coefficients)

  @property
  def properties(self) -> Properties:
    """Characteristic if a term is, shift invariant if all terms are."""
    terms = [
      term.properties
      for term, coefficient in zip(self.terms, self.coefficients)
      if coefficient
    ]
    orders = [t.contraction_order for t in terms if t.contraction_order]
    scales = {term.scale_order for term in terms}
    return Properties(
      characteristic=any(term.characteristic for term in terms),
      shift_invariant=all(term.shift_invariant for term in terms),
      scale_order=scales.pop() if len(scales) == 1 else None,
      contraction_order=min(orders) if len(orders) == len(terms) else None,
    )

  @property
  def at_zero(self) -> float:
    """k(x, x), if shift invariant."""
    return sum(c * k.at_zero for c, k in zip(self.coefficients, self.terms))

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

  def _decays(self) -> Optional[List[reaches.Decay]]:
    found = []
    for coefficient, term in zip(self.coefficients, self.terms):
      if not coefficient:
        continue
      decays = term._decays()
      if decays is None:
        return None
      found += [
        decay._replace(size=coefficient * decay.size) for decay in decays
      ]
    return found


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
  if not low <= high:
    raise errors.UserError(
      f"the exponents must go up, got {low}..{high}; write for example -8..8"
    )
  hs = tuple(2.0**exponent for exponent in range(low, high + 1))
  return GaussianMixture(hs, tuple(math.sqrt(h) for h in hs))


unrectified = Unrectified
laplace = Laplace
multiquadric = Multiquadric
exp_prod = ExpProd


def weighted_sum(
  terms: Sequence[Kernel], coefficients: Optional[Sequence[float]] = None
) -> Sum:
  """sum_i c_i k_i; coefficients default to 1."""
  if coefficients is None:
    coefficients = (1.0,) * len(terms)
  return Sum(tuple(terms), tuple(coefficients))
