"""What an action is chosen by: a number from its return distribution.

A score maps distributions [B, A, N], and for those that need it uniform draws,
to [B, A]; the action with the largest one is taken. Those for exploration ask
for fresh draws each step or for one kept through an episode; those for risk
look at the tails.
"""

import abc
import dataclasses
import enum
import math
from typing import Any, Callable, Optional, Union

import tensorflow as tf

from tf_mmdrl.core import score_words
from tf_mmdrl.core.return_distribution import ReturnDistribution

# A number, or a function that gives one when it is needed: a schedule.
Value = Union[float, Callable[[], tf.Tensor]]

_BISECTIONS = 24  # halvings of [0, 1]: float32's digits


class Draws(enum.Enum):
  """Which uniform draws a score needs."""

  NONE = "none"
  EACH_STEP = "each step"  # [B, A]
  EACH_EPISODE = "each episode"  # [B, 1]


class Score(abc.ABC):
  """What an action is chosen by."""

  draws = Draws.NONE

  @abc.abstractmethod
  def __call__(
    self, distributions: ReturnDistribution, uniform: tf.Tensor
  ) -> tf.Tensor:
    """[B, A] scores.

    Args:
      distributions: [B, A, N].
      uniform: in [0, 1), as `draws` says; not read where it says none.

    Returns:
      Scores.
    """

  def see(self, distributions: ReturnDistribution, observation: Any):
    """The distributions that the score is of, where it depends on more.

    Args:
      distributions: [B, A, N], of what is still to come.
      observation: nest of [B, ...], the network's part.

    Returns:
      Distributions; the same unless what was earned before counts.
    """
    del observation
    return distributions

  def by(self, other: "Score") -> "Score":
    """Another score of the same: of the utility, where there is one."""
    return other

  def logits(self, distributions: ReturnDistribution) -> Optional[tf.Tensor]:
    """[B, A] if actions are drawn by the softmax of these; None otherwise."""
    del distributions
    return None


@dataclasses.dataclass(frozen=True)
class Mean(Score):
  """The expected return."""

  def __call__(self, distributions, uniform):
    """[B, A] expected returns."""
    return distributions.mean()


@dataclasses.dataclass(frozen=True)
class Boltzmann(Score):
  """Actions with probability softmax(Q / temperature).

  Attributes:
    temperature: above 0.
  """

  temperature: Value
  draws = Draws.EACH_STEP

  def __post_init__(self):
    _check("boltzmann", self.temperature)

  def __call__(self, distributions, uniform):
    """[B, A] whose largest is such a draw: Q / T plus Gumbel noise."""
    tiny = tf.constant(1e-20, uniform.dtype)
    gumbel = -tf.math.log(-tf.math.log(tf.maximum(uniform, tiny)))
    return self.logits(distributions) + gumbel

  def logits(self, distributions):
    """[B, A] expected returns over the temperature."""
    return distributions.mean() / _now(self.temperature)


@dataclasses.dataclass(frozen=True)
class UpperConfidence(Score):
  """Mean + beta x standard deviation.

  Attributes:
    beta: at least 0; a schedule usually falls.
  """

  beta: Value

  def __post_init__(self):
    _check("ucb", self.beta)

  def __call__(self, distributions, uniform):
    """[B, A] upper confidence bounds."""
    return distributions.mean() + _now(self.beta) * distributions.deviation()


@dataclasses.dataclass(frozen=True)
class Thompson(Score):
  """One particle of each action, drawn anew each step."""

  draws = Draws.EACH_STEP

  def __call__(self, distributions, uniform):
    """[B, A] draws from each action's distribution."""
    return distributions.particle_at(uniform)


@dataclasses.dataclass(frozen=True)
class Bootstrapped(Score):
  """Scores actions by one of their particles, the same for a whole episode."""

  draws = Draws.EACH_EPISODE

  def __call__(self, distributions, uniform):
    """[B, A] particles of one index (of one share, if they have weights)."""
    mean = distributions.mean()
    return distributions.particle_at(uniform + tf.zeros_like(mean))


@dataclasses.dataclass(frozen=True)
class CVaR(Score):
  """The mean of the worst returns.

  Attributes:
    level: in (0, 1]: their probability; 1 is risk-neutral.
  """

  level: float

  def __post_init__(self):
    score_words.require("cvar", self.level)

  def __call__(self, distributions, uniform):
    """[B, A] conditional values at risk."""
    return distributions.cvar(self.level)


@dataclasses.dataclass(frozen=True)
class MeanDeviation(Score):
  """Mean - penalty x standard deviation.

  Attributes:
    penalty: lambda; averse to risk if positive.
  """

  penalty: float

  def __post_init__(self):
    score_words.require("mean_deviation", self.penalty)

  def __call__(self, distributions, uniform):
    """[B, A] penalised means."""
    return distributions.mean() - self.penalty * distributions.deviation()


@dataclasses.dataclass(frozen=True)
class Wang(Score):
  """Wang's distortion: levels go to Phi(Phi^-1(tau) + eta) (IQN, Section 4).

  Attributes:
    eta: averse to risk if negative.
  """

  eta: float

  def __post_init__(self):
    score_words.require("wang", self.eta)

  def __call__(self, distributions, uniform):
    """[B, A] distorted means."""

    # The inverse of the map of levels distorts the distribution function.
    def distortion(cumulative):
      shifted = tf.math.ndtri(cumulative) - self.eta
      return tf.math.erfc(-shifted / math.sqrt(2)) / 2

    return distributions.distorted(
      lambda c: tf.where((c > 0) & (c < 1), distortion(_inside(c)), c)
    )


@dataclasses.dataclass(frozen=True)
class CPW(Score):
  """Cumulative probability weighting (IQN, Section 4).

  Levels go to tau^eta / (tau^eta + (1 - tau)^eta)^(1 / eta).

  Attributes:
    eta: in [0.3, 1], where that map increases; 1 is risk-neutral, and 0.71
      fits the choices of people.
  """

  eta: float = 0.71

  def __post_init__(self):
    score_words.require("cpw", self.eta)

  def __call__(self, distributions, uniform):
    """[B, A] distorted means."""
    return distributions.distorted(self._inverse)

  def _level(self, tau):
    power = tau**self.eta
    return power / (power + (1 - tau) ** self.eta) ** (1 / self.eta)

  def _inverse(self, cumulative):
    """Where the map of levels gives `cumulative`, by bisection."""
    low, high = tf.zeros_like(cumulative), tf.ones_like(cumulative)
    for _ in range(_BISECTIONS):
      middle = (low + high) / 2
      under = self._level(middle) < cumulative
      low = tf.where(under, middle, low)
      high = tf.where(under, high, middle)
    inside = (cumulative > 0) & (cumulative < 1)
    return tf.where(inside, (low + high) / 2, cumulative)


def _inside(cumulative):
  return tf.clip_by_value(cumulative, 1e-7, 1 - 1e-7)


def _now(value: Value) -> Union[float, tf.Tensor]:
  return tf.cast(value(), tf.float32) if callable(value) else value


def _check(name: str, value: Value) -> None:
  if not callable(value):
    score_words.require(name, value)
