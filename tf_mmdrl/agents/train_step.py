"""A training step, and several in turn, as one piece where that is faster.

In order: the unit follows the returns, weights are updated, and after every few
updates the target network follows them. XLA can neither stop nor print. So what
it compiles as one piece leaves the weights as they were if a number is not
finite, and returns the warnings, which are printed outside.
"""

from typing import Any, Callable, NamedTuple

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.agents.dqn import dqn_agent

from tf_mmdrl.agents import compiling, replicas, sight, updates
from tf_mmdrl.agents.learning import Learning
from tf_mmdrl.agents.network_pair import NetworkPair
from tf_mmdrl.agents.unit import Follower

# (nest of [K, ...], weights [K, B]) -> losses, with K in front.
TrainInTurn = Callable[[Any, tf.Tensor], tf_agent.LossInfo]


class Taken(NamedTuple):
  """A step that was taken.

  Attributes:
    update: the update of the weights.
    notices: what there is to say about it.
  """

  update: updates.Update
  notices: sight.Notices


class Round(NamedTuple):
  """Steps that were taken in turn.

  Attributes:
    loss_info: the losses of each step, with K in front; 0 after a step that was
      not finite.
    bad: what was not finite in the last step that was taken.
    notices: what there is to say about any of them.
  """

  loss_info: tf_agent.LossInfo
  bad: updates.Bad
  notices: sight.Notices


class TrainStep:
  """Takes an agent from one train step to the next."""

  def __init__(
    self,
    follow_unit: Follower,
    learning: Learning,
    networks: NetworkPair,
    seeing: sight.Sight,
    counter: tf.Variable,
    plan: compiling.Plan,
  ):
    """Compiles at the first step.

    Args:
      follow_unit: lets the unit follow returns.
      learning: updates the weights, and counts updates.
      networks: the online and the target network.
      seeing: finds out when the agent cannot learn.
      counter: the train step.
      plan: what XLA compiles.
    """
    self._follow_unit = follow_unit
    self._learning = learning
    self._networks = networks
    self._sight = seeing
    self._counter = counter
    self._plan = plan
    # Without autograph, which would hide errors behind its own.
    self._compiled = tf.function(
      self._attempt, autograph=False, jit_compile=plan.whole
    )

  def __call__(self, experience, weights) -> updates.Update:
    """Trains once.

    Args:
      experience: a batch.
      weights: [B] importance weights, or None.

    Returns:
      The update.

    Raises:
      InvalidArgumentError: if a number was not finite; weights stay.
    """
    if not self._is_one_piece():
      return self._in_pieces(experience, weights).update
    taken = self._compiled(experience, weights)
    self._tell(taken.update.bad, taken.notices)
    return taken.update

  def in_turn(self, unpack: Callable[[Any], Any]) -> TrainInTurn:
    """A function that trains on K batches in turn, as `K` calls would.

    Args:
      unpack: what is kept of a batch -> experience.

    Returns:
      The function; it compiles at its first call.
    """

    def attempts(batches, weights):
      return self._loop(self._attempt, unpack, batches, weights)

    compiled = tf.function(
      attempts, autograph=False, jit_compile=self._plan.whole
    )

    def train(batches, weights):
      if not self._is_one_piece():
        found = self._loop(self._in_pieces, unpack, batches, weights)
        return found.loss_info
      found = compiled(batches, weights)
      self._tell(found.bad, found.notices)
      return found.loss_info

    return train

  def _is_one_piece(self) -> bool:
    # Replicas exchange gradients, which XLA may not do.
    return self._plan.whole and not tf.distribute.has_strategy()

  def _in_pieces(self, experience, weights) -> Taken:
    """A step of parts that are compiled one by one; stops, and prints."""
    self._follow_unit(experience, weights)
    update = self._learning.update(experience, weights)
    replicas.in_one_place(
      lambda share: self._sight.tell(self._after(share, tf.constant(True))),
      update.beyond_reach,
    )
    return Taken(update, sight.nothing())

  def _attempt(self, experience, weights) -> Taken:
    """A step as one piece for XLA, which can neither stop nor print."""
    self._follow_unit(experience, weights)
    update = self._learning.attempt(experience, weights)
    notices = self._after(
      update.beyond_reach, update.finite, in_place=self._plan.whole
    )
    return Taken(update, notices)

  def _after(
    self,
    beyond_reach: tf.Tensor,
    was_updated: tf.Tensor,
    in_place: bool = False,
  ) -> sight.Notices:
    """What follows an update now and then."""
    step = tf.identity(self._counter)
    self._networks.update_target(step, was_updated, in_place)
    return self._sight.look(
      beyond_reach, self._networks.online.unit, step, was_updated
    )

  def _tell(self, bad: updates.Bad, notices: sight.Notices) -> None:
    updates.stop_unless_finite(bad, self._counter)
    self._sight.tell(notices)

  def _loop(
    self, take: Callable[..., Taken], unpack, batches, weights
  ) -> Round:
    """Takes steps until the last batch, or until a number is not finite."""
    count, batch_size = weights.shape

    def body(k, arrays, _, notices):
      batch = tf.nest.map_structure(lambda part: part[k], batches)
      update, new = take(unpack(batch), weights[k])
      values = tf.nest.flatten(update.loss_info)
      arrays = [array.write(k, v) for array, v in zip(arrays, values)]
      return k + 1, arrays, update.bad, sight.newest(notices, new)

    def array(*shape):
      return tf.TensorArray(tf.float32, count, element_shape=shape)

    _, arrays, bad, notices = tf.while_loop(
      lambda k, _, bad, __: (k < count) & updates.is_finite(bad),
      body,
      (
        0,
        [array(), array(batch_size), array(batch_size)],
        dict.fromkeys(updates.KINDS, tf.zeros([], tf.int64)),
        sight.nothing(),
      ),
      parallel_iterations=1,
    )
    loss, td_loss, td_error = (array.stack() for array in arrays)
    info = tf_agent.LossInfo(loss, dqn_agent.DqnLossInfo(td_loss, td_error))
    return Round(info, bad, notices)
