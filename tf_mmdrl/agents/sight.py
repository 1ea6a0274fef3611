"""Tells when an agent cannot learn, so that none fails silently.

A Gaussian kernel passes no gradient between particles that are far apart, and
C51's atoms cannot express what lies beyond them. The loss may fall even so.
Where all rewards are 0 there is nothing to learn.
"""

import sys
from typing import NamedTuple

import tensorflow as tf

from tf_mmdrl.agents import replicas
from tf_mmdrl.agents.unit import Unit, state
from tf_mmdrl.losses import Loss

PERIOD = 64  # updates between two looks
_LOOKS = 16  # that a judgement needs
_MEMORY = 64  # looks that the average goes back, nearly
_TOO_MANY = 0.5  # share out of sight, after a few looks
_TOO_MANY_UNITS = 64  # of a return, or returns of a unit, if it is fixed


def is_due(step: tf.Tensor) -> tf.Tensor:
  """Whether to look at an update with this number."""
  return step % PERIOD == 0


class Notice(NamedTuple):
  """Something to say, each part []; XLA computes it and cannot print it.

  Attributes:
    due: whether to say it.
    step: updates so far.
    unit: natural rewards of one unit of return.
    size: how large returns are, in natural rewards.
    beyond: the share out of reach, averaged.
  """

  due: tf.Tensor
  step: tf.Tensor
  unit: tf.Tensor
  size: tf.Tensor
  beyond: tf.Tensor


class Notices(NamedTuple):
  """What a look found; each is said once in an agent's life at most.

  Attributes:
    blind: the agent learns little or nothing.
    no_rewards: all rewards were 0.
  """

  blind: Notice
  no_rewards: Notice


def nothing() -> Notices:
  """Notices of which none is due."""
  none = tf.zeros([])
  notice = Notice(tf.constant(False), tf.zeros([], tf.int64), none, none, none)
  return Notices(notice, notice)


def newest(before: Notices, now: Notices) -> Notices:
  """Merges notices: of each kind the one that is due, the later of two."""

  def one(old: Notice, new: Notice) -> Notice:
    return Notice(*(tf.where(new.due, b, a) for a, b in zip(old, new)))

  return Notices(*map(one, before, now))


class Sight(tf.Module):
  """How much of the target the loss sees.

  Attributes:
    beyond: [] the share that is out of reach, averaged; 0 if nothing ever is.
  """

  def __init__(self, unit: Unit, *, unit_stays: bool, agent: str, loss: Loss):
    """Begins with nothing seen.

    Args:
      unit: what measures returns.
      unit_stays: whether the unit cannot follow them.
      agent: the class that the user made, for the message.
      loss: what sees, or does not.
    """
    super().__init__(name="sight")
    # Methods: the unit keeps its own variables.
    self._size, self._is_known = unit.size, unit.known.read_value
    self._is_auto, self._unit_stays = unit.is_auto, unit_stays
    self._agent = agent
    self._beyond_what = loss.beyond_what
    self._too_many = loss.too_far_beyond

    self.beyond = state(0.0, tf.float32, "beyond")
    self._looks = state(0, tf.int64, "looks")
    self._told = state(False, tf.bool, "told")

  def look(
    self,
    share: tf.Tensor,
    unit: tf.Tensor,
    step: tf.Tensor,
    was_updated: tf.Tensor,
  ) -> Notices:
    """Averages in the share of some updates.

    Args:
      share: [] out of reach, in [0, 1], if it is due.
      unit: [] or [D] natural rewards of one unit.
      step: [] the train step, after the update.
      was_updated: [] whether there was one.

    Returns:
      What there is to say, for `tell`.
    """
    unit, step = tf.identity(unit), tf.cast(step, tf.int64)
    return tf.cond(
      was_updated & is_due(step - 1),  # as it was in the update
      lambda: self._judge(share, unit, step),
      nothing,
    )

  def _judge(
    self, share: tf.Tensor, unit: tf.Tensor, step: tf.Tensor
  ) -> Notices:
    self._looks.assign_add(1)
    memory = tf.cast(tf.minimum(self._looks, _MEMORY), tf.float32)
    self.beyond.assign_add((share - self.beyond) / memory)
    size, is_bad = self._size(), self.beyond > _TOO_MANY
    # Much is out of sight at first; what stays so is bad with a smaller share.
    stays = tf.minimum(self.beyond, share) > self._too_many
    is_bad |= (self._looks >= _MEMORY) & stays
    if self._unit_stays:
      too_large = size > _TOO_MANY_UNITS * unit
      too_small = (size > 0) & (size < unit / _TOO_MANY_UNITS)
      is_bad |= tf.reduce_any(too_large | too_small)
    # Of joint returns the largest is told, which is [].
    size, unit = tf.reduce_max(size), tf.reduce_max(unit)
    is_blind = (self._looks >= _LOOKS) & ~self._told & is_bad
    self._told.assign(self._told | is_blind)
    is_known = tf.reduce_any(self._is_known())
    no_rewards = (self._looks == _LOOKS) & ~is_known
    found = (step, unit, size, tf.identity(self.beyond))
    return Notices(Notice(is_blind, *found), Notice(no_rewards, *found))

  def tell(self, notices: Notices) -> None:
    """Prints what is due; not for XLA."""
    # A terminal may show a progress line.
    begin = "\n" if sys.stderr.isatty() else ""
    blind, no_rewards = notices
    replicas.when(
      blind.due,
      lambda: tf.print(
        f"{begin}warning: {self._agent} learns little, or wrongly. At step",
        blind.step,
        "one unit of return is",
        blind.unit,
        "and returns are about",
        blind.size,
        "natural rewards;",
        tf.cast(tf.round(100 * blind.beyond), tf.int32),
        f"% of {self._beyond_what}. {self._advice()}",
        output_stream=sys.stderr,
      ),
    )
    replicas.when(
      no_rewards.due,
      lambda: tf.print(
        f"{begin}note: {self._agent} has seen no reward other than 0 in",
        no_rewards.step,
        "updates, so there is nothing to learn yet. Check the environment's"
        " rewards; if they are sparse, explore more or longer.",
        output_stream=sys.stderr,
      ),
    )

  def _advice(self) -> str:
    if self._is_auto and self._unit_stays:
      return (
        "The unit stays, because which weights of this network make the"
        " particles is not known; use a ReturnNetwork, or pass a unit."
      )
    if self._is_auto:
      return (
        "Choose a kernel with a tail, kernels.smooth_energy(1.0) (in mmdrl"
        " train, --set agent.kernel=smooth_energy:1)."
      )
    return 'Pass unit="auto" (in mmdrl train, --set agent.unit=auto).'
