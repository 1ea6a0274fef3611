"""What a vector of returns is worth: one number.

A utility maps vectors [..., D] to numbers [...]. The two criteria of
multi-objective learning (Roijers et al., "A Survey of Multi-Objective
Sequential Decision-Making", 2013; Hayes et al., 2022) are scores of joint
return distributions:

* ESR, `Expected(utility)`: E[u(G)], of what a single episode is worth. It needs
  the joint distribution; `score=CVaR(0.25)` puts another score in the
  expectation's place.
* SER, `OfExpectation(utility)`: u(E[G]), of what many episodes come to.
"""

import abc
import dataclasses
import re
import textwrap
from typing import Any, Callable, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.policies import scores

_NOT_FINITE = "gave no finite number for the returns"
# A power of 1 / rho multiplies roundings by as much.
_LEAST_RHO = 0.001
_A_NUMBER_FOR_ANY = "it must give a number for any"
# Leading dimensions of the vectors that a function is tried with: those of
# scores of episodes, of one action's particles and of all actions'.
_TRIED = ((-1,), (1, -1), (-1, 1, 1))


class Utility(abc.ABC):
  """What a vector of D returns is worth."""

  @abc.abstractmethod
  def __call__(self, returns: tf.Tensor) -> tf.Tensor:
    """[...] numbers of vectors [..., D]."""

  def check(self, dimensions: int) -> None:
    """Raises unless the utility is one of vectors of so many returns."""
    for name in ("weights", "limits", "reference"):
      numbers = getattr(self, name, ())
      if numbers and len(numbers) != dimensions:
        raise errors.UserError(
          f"{type(self).__name__.lower()} wants one of its {name} for each of"
          f" the {dimensions} returns, got {len(numbers)}: {numbers}"
        )


@dataclasses.dataclass(frozen=True)
class Linear(Utility):
  """sum_i w_i g_i.

  Attributes:
    weights: w_i; () for the sum of all.
  """

  weights: Tuple[float, ...] = ()

  def __post_init__(self):
    _check_finite("linear's weights", self.weights)

  def __call__(self, returns):
    """[...] weighted sums."""
    if self.weights:
      returns = returns * tf.constant(self.weights, returns.dtype)
    return tf.reduce_sum(returns, axis=-1)


@dataclasses.dataclass(frozen=True)
class Chebyshev(Utility):
  """min_i w_i (g_i - z_i): the worst of the returns, over a reference.

  Attributes:
    weights: w_i, above 0.
    reference: z_i; () for zeros.
  """

  weights: Tuple[float, ...]
  reference: Tuple[float, ...] = ()

  def __post_init__(self):
    _check_above_zero("chebyshev's weights", self.weights)
    _check_finite("chebyshev's reference", self.reference)

  def __call__(self, returns):
    """[...] least weighted differences."""
    if self.reference:
      returns = returns - tf.constant(self.reference, returns.dtype)
    weighted = returns * tf.constant(self.weights, returns.dtype)
    return tf.reduce_min(weighted, axis=-1)


@dataclasses.dataclass(frozen=True)
class CES(Utility):
  """(sum_i w_i max(g_i, 0)^rho)^(1 / rho): concave, it likes balance.

  The constant elasticity of substitution. rho = 1 is linear, rho -> 0 is the
  weighted geometric mean, which needs weights that sum to 1.

  Attributes:
    rho: in [0.001, 1].
    weights: w_i, above 0; they are divided by their sum.
  """

  rho: float
  weights: Tuple[float, ...]

  def __post_init__(self):
    _check_above_zero("ces's weights", self.weights)
    if not _LEAST_RHO <= self.rho <= 1:
      raise errors.UserError(
        f"ces's rho must lie in [{_LEAST_RHO}, 1], because float32 has no"
        f" digits left below, got {self.rho}"
      )

  def __call__(self, returns):
    """[...] utilities, at least 0."""
    powers = tf.maximum(returns, 0.0) ** self.rho
    total = sum(self.weights)
    shares = [weight / total for weight in self.weights]
    weighted = powers * tf.constant(shares, returns.dtype)
    return tf.reduce_sum(weighted, axis=-1) ** (1 / self.rho)


@dataclasses.dataclass(frozen=True)
class Threshold(Utility):
  """1 if g_i >= c_i for all i, else 0: its mean is the probability of that.

  Attributes:
    limits: c_i; -inf for a return without one.
  """

  limits: Tuple[float, ...]

  def __post_init__(self):
    _check_finite(
      "threshold's limits (but for -inf, which is none)",
      tuple(limit for limit in self.limits if limit != -np.inf),
    )

  def __call__(self, returns):
    """[...] zeros and ones."""
    holds = returns >= tf.constant(self.limits, returns.dtype)
    return tf.cast(tf.reduce_all(holds, axis=-1), returns.dtype)


@dataclasses.dataclass(frozen=True)
class Function(Utility):
  """A Python function of TensorFlow operations.

  Attributes:
    function: [..., D] -> [...].
    name: for errors.
  """

  function: Callable[[tf.Tensor], tf.Tensor]
  name: str = "function"

  def __call__(self, returns):
    """[...] what the function gives; raises if that is not finite."""
    found = tf.convert_to_tensor(self.function(returns))
    bad = tf.reshape(~tf.math.is_finite(found), [-1])
    vectors = tf.reshape(returns, [-1, returns.shape[-1]])
    # XLA leaves assertions out; policies act without it.
    check = tf.debugging.Assert(
      ~tf.reduce_any(bad),
      [f"the utility {self.name} {_NOT_FINITE}", vectors[tf.argmax(bad)]],
      summarize=returns.shape[-1],
    )
    with tf.control_dependencies([] if check is None else [check]):
      return tf.identity(found)

  def check(self, dimensions: int) -> None:
    """Tries the function on some vectors."""
    tried = np.concatenate(
      [
        np.zeros([1, dimensions]),
        np.eye(dimensions),
        -np.eye(dimensions),
        np.random.RandomState(0).normal(0, 10, [8, dimensions]),
      ]
    )
    vectors = tf.constant(tried, tf.float32)
    for shape in _TRIED:
      found = self._tried(tf.reshape(vectors, [*shape, dimensions]))
      bad = np.flatnonzero(~np.isfinite(found))
      if bad.size:
        returns = np.round(tried[bad[0]], 3) + 0  # no -0.0
        raise errors.UserError(
          f"the utility {self.name} {_NOT_FINITE} {returns.tolist()};"
          f" {_A_NUMBER_FOR_ANY}"
        )

  def _tried(self, vectors: tf.Tensor) -> np.ndarray:
    """What the function gives for these, as a graph: so it will be called."""

    @tf.function(autograph=False)
    def call(vectors):  # an argument: what NumPy would refuse
      return tf.convert_to_tensor(self.function(vectors))

    try:
      found = call(vectors)
    except (Exception, SystemExit) as error:  # whatever a user's code raises
      text = textwrap.shorten(str(error), 120, placeholder=" ...")
      raise errors.UserError(
        f"the utility {self.name} raised {type(error).__name__} ({text}) for"
        f" vectors of {vectors.shape[-1]} returns; write it in TensorFlow"
        " operations, from [..., D] to [...]"
      ) from error
    wanted = vectors.shape[:-1]
    if found.shape != wanted or found.dtype != tf.float32:
      raise errors.UserError(
        f"the utility {self.name} must give one float32 for each vector,"
        f" {wanted} for {vectors.shape}, got {found.dtype.name} {found.shape}"
      )
    return found.numpy()


def raise_if_not_finite(error: tf.errors.InvalidArgumentError) -> None:
  """Raises a `UserError` if the error says that a utility was not finite."""
  said = re.search(
    rf"(the utility \S+ {_NOT_FINITE})['\]\[\s]*([^\]\n]*)", error.message
  )
  if said is not None:
    returns = ", ".join(said[2].replace(",", " ").split())
    raise errors.UserError(
      f"{said[1]} [{returns}]; {_A_NUMBER_FOR_ANY}"
    ) from error


class UtilityScore(scores.Score):
  """A score of joint return distributions, by a utility.

  Attributes:
    utility: of a vector of returns.
    accrued: whether observations end with what was earned so far, D discounted
      sums of rewards, and with the discount of what comes
      (`environments.accrued_rewards`). The utility is then that of the whole
      episode's return.
  """

  utility: Utility
  accrued: bool

  def see(
    self, distributions: ReturnDistribution, observation: Any
  ) -> ReturnDistribution:
    """Distributions of the whole return: earned, plus discount times rest."""
    if not self.accrued:
      return distributions
    assert isinstance(distributions, JointReturnDistribution)
    number = distributions.dimensions
    earned = observation[:, tf.newaxis, tf.newaxis, -number - 1 : -1]
    discount = observation[:, tf.newaxis, tf.newaxis, -1:]
    return distributions.map_values(lambda z: earned + discount * z)

  def by(self, other: scores.Score) -> scores.Score:
    """Another score of the same utility; this one instead of the mean."""
    if other == scores.Mean():
      return self
    return Expected(self.utility, other, accrued=self.accrued)


@dataclasses.dataclass(frozen=True)
class Expected(UtilityScore):
  """A score of the utility's distribution: E[u(G)] (ESR) by default.

  Attributes:
    score: of the utility, a number; the mean by default.
  """

  utility: Utility
  score: scores.Score = scores.Mean()  # noqa: RUF009  (it is frozen)
  accrued: bool = False

  @property
  def draws(self):
    """Those of the score."""
    return self.score.draws

  def __call__(self, distributions, uniform):
    """[B, A] scores of the utilities."""
    return self.score(distributions.utility(self.utility), uniform)

  def logits(self, distributions):
    """[B, A] if the score draws actions by the softmax of these."""
    return self.score.logits(distributions.utility(self.utility))


@dataclasses.dataclass(frozen=True)
class OfExpectation(UtilityScore):
  """u(E[G]) (SER)."""

  utility: Utility
  accrued: bool = False

  def __call__(self, distributions, uniform):
    """[B, A] utilities of the expected returns."""
    del uniform
    return self.utility(distributions.mean())


def _check_above_zero(name: str, numbers: Tuple[float, ...]) -> None:
  _check_finite(name, numbers)
  if not numbers or not (np.array(numbers, np.float32) > 0).all():
    raise errors.UserError(f"{name} must be above 0, got {numbers}")


def _check_finite(name: str, numbers: Tuple[float, ...]) -> None:
  with np.errstate(over="ignore"):
    if not np.isfinite(np.array(numbers, np.float32)).all():
      raise errors.UserError(f"{name} must be finite as float32, got {numbers}")
