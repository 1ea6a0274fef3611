"""The unit of return: agents learn in units, users see natural rewards.

Kernels, supports and Huber's kappa have a size of their own, and returns should
be of that size. The unit is found from the rewards that were seen
(`ops.return_size` says how) and is a power of two, so that dividing by it, and
changing it, are exact: what a network represents does not change by a bit, nor
does anything that a run does if all rewards are multiplied by a power of two.

PopArt (van Hasselt et al., "Learning values across many orders of magnitude",
2016) changes its scale in the same way, at every update and up to rounding.
"""

from typing import Iterable, Optional, Tuple, Union

import numpy as np
import tensorflow as tf

from tf_mmdrl.agents import compiling, moments, replicas, transitions
from tf_mmdrl.agents.network_pair import NetworkPair
from tf_mmdrl.agents.optimizers import Group, Groups
from tf_mmdrl.core import unit_words
from tf_mmdrl.ops import return_size

AUTO = unit_words.AUTO

# Returns of so many units, as a root mean square, are what "auto" aims at (up
# to twice as many, because the unit is a power of two). With more units in a
# return, an optimizer's step is smaller in natural rewards: learning is
# steadier and slower.
WANTED = 6.0
_LEAST, _MOST = 1 / 2, 8 / 3  # of what is wanted, where the unit stays as it is
_FIRST = 64  # batches that are all measured, one by one
_PERIOD = 32  # updates from one measure to the next, later
_MEMORY = 64  # measures that the averages look back, nearly


def state(value, dtype: tf.DType, name: str) -> tf.Variable:
  """A variable that is the same on all replicas, and does not train."""
  return tf.Variable(
    value,
    trainable=False,
    dtype=dtype,
    name=name,
    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
  )


class Unit(tf.Module):
  """Measures returns, and says which unit suits them; a unit for each return.

  Attributes:
    is_auto: whether the unit follows the measure.
    initial: the unit before anything is known, or for good.
    known: [] or [D], whether a reward other than 0 was seen, so that there is a
      measure.
  """

  def __init__(
    self,
    unit: Union[str, float],
    wanted: float = WANTED,
    dimensions: Optional[int] = None,
  ):
    """Begins with nothing seen.

    Args:
      unit: "auto", "auto:X" to aim at returns of X units, or how many natural
        rewards one unit is.
      wanted: the X of "auto".
      dimensions: D, of joint returns.
    """
    super().__init__(name="unit")
    self.is_auto, number = unit_words.read(unit)
    self._wanted, self.initial = wanted, 1.0
    if number is not None and self.is_auto:
      self._wanted = number
    elif number is not None:
      self.initial = number

    outer = () if dimensions is None else (dimensions,)
    zeros = np.zeros([*outer, return_size.NUM_STATISTICS])
    self._average = state(zeros, tf.float32, "average")
    self._batches = state(0, tf.int64, "batches")
    self.known = state(np.zeros(outer, bool), tf.bool, "known")

  def is_due(self, step: tf.Tensor) -> tf.Tensor:
    """[] whether to measure a batch at an update with this number."""
    is_new = (self._batches < _FIRST) | ~tf.reduce_all(self.known)
    return is_new | (step % _PERIOD == 0)

  def follow(
    self, statistics: tf.Tensor, unit: tf.Tensor
  ) -> Tuple[tf.Tensor, tf.Tensor]:
    """Averages in what a batch said, and chooses the unit by it.

    Args:
      statistics: what `return_size.statistics` gives.
      unit: [] or [D] the unit until now.

    Returns:
      The unit to have, `unit` itself unless returns have left it, and whether
      it is the first; each of the shape of `unit`.
    """
    counts = tf.reduce_sum(statistics[..., : return_size.NUM_BINS]) > 0
    self._batches.assign_add(tf.cast(counts, tf.int64))
    memory = tf.minimum(self._batches, _MEMORY)  # the mean of all at first
    share = tf.cast(counts, tf.float32) / tf.cast(
      tf.maximum(memory, 1), tf.float32
    )
    self._average.assign_add(share * (statistics - self._average))
    size = return_size.return_size(self._average)
    # In powers of two and relative to them, for exactness.
    distance = size.exponent - return_size.exponent_of(unit)
    in_units = size.relative * return_size.power_of_two(
      tf.clip_by_value(distance, -60, 60)
    )
    best = size.exponent + return_size.exponent_of(size.relative / self._wanted)
    largest = unit_words.LARGEST_EXPONENT
    best = tf.clip_by_value(best, -largest, largest)
    is_first = size.known & ~self.known
    share = in_units / self._wanted
    leaves = size.known & ((share < _LEAST) | (share > _MOST))
    self.known.assign(self.known | size.known)
    wanted = return_size.power_of_two(best)
    return tf.where(is_first | leaves, wanted, unit), is_first

  def size(self) -> tf.Tensor:
    """[] or [D] root mean square of returns, in rewards; 0 if unknown."""
    size = return_size.return_size(self._average)
    found = size.relative * return_size.power_of_two(
      tf.clip_by_value(size.exponent, -126, 127)
    )
    return tf.where(size.known, found, 0.0)


class Follower:
  """Lets the unit of an agent's networks follow the returns that it sees.

  Attributes:
    stays: whether the unit cannot follow, because it is a number or because
      which weights of the networks to change is not known.
  """

  def __init__(
    self,
    unit: Unit,
    networks: NetworkPair,
    groups: Groups,
    returns: transitions.NStepReturn,
    step: tf.Variable,
    plan: compiling.Plan,
    agent: str,
  ):
    """Gives networks the initial unit, if it is a number.

    Args:
      unit: what measures returns.
      networks: the networks whose unit follows.
      groups: the weights that learn; optimizers' moments follow as well.
      returns: what is learnt.
      step: the train step.
      plan: what XLA compiles; the measure is one of the pieces.
      agent: the class that the user made, for a warning.
    """
    self._unit = unit
    self._networks = networks
    self._groups = groups
    self._returns = returns
    self._step = step
    self._in_place = plan.whole
    if not unit.is_auto:
      for net in networks.both:
        net.unit.assign(unit.initial * tf.ones_like(net.unit))
    self.stays = not unit.is_auto or not all(
      hasattr(net, "unit_changes") for net in networks.both
    )
    if not self.stays:
      moments.tell_unknown(agent, *groups()[0])
    # Without autograph, which would hide errors behind its own.
    self._measure = tf.function(
      lambda *batch: self._choose(self._statistics(*batch)),
      autograph=False,
      jit_compile=plan.pieces,
    )

  def __call__(self, experience, weights) -> None:
    """Measures returns if it is time, and changes the unit if they left it."""
    due = self._unit.is_due(self._step)
    if tf.distribute.has_strategy():
      replicas.in_one_place(
        lambda statistics: replicas.when(
          due, lambda: self._change(*self._choose(statistics))
        ),
        self._statistics(experience, weights),
      )
    else:
      replicas.when(
        due,
        lambda: self._change(*self._measure(experience, weights)),
        self._in_place,
      )

  def _statistics(self, experience, weights) -> tf.Tensor:
    """What a batch says of the size of returns."""
    n, gamma, reward_scale_factor = self._returns
    steps = transitions.steps(experience, n=n, gamma=gamma)
    counts = steps.mask if weights is None else steps.mask * weights
    reward = reward_scale_factor * steps.reward
    return return_size.statistics(reward, steps.discount, counts)

  def _choose(self, statistics) -> Tuple[tf.Tensor, tf.Tensor]:
    return self._unit.follow(statistics, self._networks.online.unit)

  def _change(self, unit: tf.Tensor, is_first: tf.Tensor) -> None:
    if not self._unit.is_auto:
      return
    due = unit != self._networks.online.unit
    if self.stays:
      due &= is_first  # which weights to change is not known
      unit = tf.where(is_first, unit, self._networks.online.unit)
    replicas.when(
      tf.reduce_any(due),
      lambda: change(self._networks.both, self._groups(), unit, is_first),
      self._in_place,
    )


def change(
  networks, groups: Iterable[Group], unit: tf.Tensor, is_first: tf.Tensor
) -> None:
  """Gives networks another unit.

  Args:
    networks: each with a `unit`.
    groups: the optimizers, whose moments change with the weights.
    unit: [] the new unit, or [D] units.
    is_first: whether there was none before. Then weights stay: what they made
      of nothing was noise, in no unit.
  """
  for net in networks:
    if hasattr(net, "unit_changes"):
      known, stay = unit, is_first
      if unit.shape.rank:  # a weight of a return that stays is multiplied by 1
        known, stay = tf.where(is_first, net.unit, unit), tf.constant(False)
      for changed in net.unit_changes(known):
        weight = changed.variable
        moments.assign_unless(stay, weight, changed.new)
        for optimizer, weights in groups:
          if any(one is weight for one in weights):
            moments.change(optimizer, changed, stay)
    net.unit.assign(unit)
