"""All updates of a round in one compiled call."""

from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tf_mmdrl.agents import base, updates
from tf_mmdrl.core import errors
from tf_mmdrl.policies import utilities
from tf_mmdrl.replay import FrameReplayBuffer, stacks
from tf_mmdrl.train import devices, watching
from tf_mmdrl.train.actor import Weights
from tf_mmdrl.train.experience import Batches


class Learnt(NamedTuple):
  """What a round's updates found.

  Attributes:
    loss: the mean.
    losses: [K, B], of every example.
  """

  loss: float
  losses: np.ndarray


class Learner:
  """Updates an agent with batches."""

  def __init__(
    self,
    agent: base.ReturnDistributionAgent,
    buffer: FrameReplayBuffer,
    *,
    all_updates: int,
    where: tf.distribute.Strategy,
  ):
    """Compiles at the first update.

    Args:
      agent: what learns.
      buffer: a shard of what the batches are drawn from, to unpack them.
      all_updates: how many updates the whole run has.
      where: the devices that the agent was made for.
    """
    self._agent = agent
    self._buffer = buffer
    self._update = devices.train_in_turn(agent, self._experience, where)
    self._look = tf.function(self._last_update, autograph=False)

    @tf.function(autograph=False)
    def weights():
      count = tf.cast(agent.train_step_counter, tf.float32)
      values = [v.read_value() for v in agent.return_network.variables]
      return Weights(list(map(tf.identity, values)), count / all_updates)

    self._weights = weights

  def weights(self) -> Weights:
    """What actors play by, as it is now."""
    return self._weights()

  def learn(
    self,
    batches: Batches,
    step: int,
    writer: Optional[tf.summary.SummaryWriter] = None,
  ) -> Learnt:
    """Updates the agent K times.

    Args:
      batches: the batches of this round.
      step: agent steps so far, for the message if a number is not finite, and
        for the summaries.
      writer: writes the summaries of this round's last batch, if not None.

    Returns:
      The losses.
    """
    planes, info = batches
    try:
      found = self._update(planes, info.weights)
    except tf.errors.InvalidArgumentError as error:
      utilities.raise_if_not_finite(error)
      raise errors.BrokenRunError(
        f"{_reason(error)} It was at step {step:,}"
      ) from error
    if writer is not None:
      watching.write_update(writer, step, self._look(planes, info.weights))
    mean = float(found.loss.numpy().mean(dtype=np.float64))
    return Learnt(mean, found.extra.td_loss.numpy())

  def _last_update(self, planes: Any, weights: tf.Tensor) -> updates.Update:
    """What one more update by the last batch would be.

    The updates themselves write no summaries: within their loop TensorFlow
    would name them after it, and count them by updates.
    """
    batch = tf.nest.map_structure(lambda part: part[-1], planes)
    return self._agent.look(self._experience(batch), weights[-1])

  def _experience(self, planes: Any) -> Any:
    return self._buffer.from_planes(planes, stacks.stack_last_now)


def _reason(error: tf.errors.InvalidArgumentError) -> str:
  """The agent's own sentence in TensorFlow's long message."""
  first, last = "An update needs finite numbers", "lower the learning rate."
  text = error.message.replace("\n", " ").replace("] [", " ")
  if first not in text:
    raise error
  text = text[text.index(first) :].replace(" .", ".")
  return text[: text.find(last) + len(last)] if last in text else text
