"""All updates of a round in one compiled call; the next batches meanwhile.

The batches of a round are drawn from replay as it was at the end of the round
before. So they can be drawn by another thread while that round's updates run,
and what they hold does not depend on which thread is faster.
"""

from concurrent import futures
from typing import Any, Mapping, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl import replay
from tf_mmdrl.agents import base, updates
from tf_mmdrl.core import errors
from tf_mmdrl.replay import stacks
from tf_mmdrl.train import watching

Batches = Tuple[Any, replay.BufferInfo]


class Priorities(NamedTuple):
  """New priorities that have not reached replay yet; each [K, B]."""

  ids: np.ndarray
  losses: np.ndarray


class Learner:
  """Draws batches and updates an agent with them.

  A round is `take`, (collection), `prepare`, `update`.

  Attributes:
    pending: priorities of the last round's examples; they reach replay in
      `prepare`, at the same moment of every run.
  """

  def __init__(
    self,
    agent: base.ReturnDistributionAgent,
    buffer: replay.FrameReplayBuffer,
    *,
    num_updates: int,
    batch_size: int,
  ):
    """Compiles at the first update.

    Args:
      agent: what learns.
      buffer: what it learns from.
      num_updates: K, updates of a round.
      batch_size: B.
    """
    self._agent = agent
    self._buffer = buffer
    self._size = (num_updates, batch_size)
    self._thread = futures.ThreadPoolExecutor(1, "mmdrl-replay")
    self._next: Optional[futures.Future] = None
    self._generator_before: Mapping[str, Any] = {}
    self._update = tf.function(self._updates, autograph=False)
    self._look = tf.function(self._last_update, autograph=False)
    self.pending: Optional[Priorities] = None

  def prepare(self, beta: float) -> None:
    """Begins to draw the next round's batches; replay must rest meanwhile."""
    if self.pending is not None:
      ids, priorities = self.pending
      self._buffer.update_priorities(ids, priorities)
      self.pending = None
    self._draw(beta)

  def take(self, beta: float) -> Batches:
    """This round's batches, drawn before or now."""
    if self._next is None:
      self._draw(beta)
    assert self._next is not None
    batches = self._next.result()
    self._next = None
    return batches

  def update(
    self,
    batches: Batches,
    step: int,
    writer: Optional[tf.summary.SummaryWriter] = None,
  ) -> float:
    """Updates the agent K times.

    Args:
      batches: from `take`.
      step: agent steps so far, for the message if a number is not finite, and
        for the summaries.
      writer: for the summaries of this round's last batch, if any.

    Returns:
      The mean loss.
    """
    planes, info = batches
    try:
      losses, per_example = self._update(planes, info.weights)
    except tf.errors.InvalidArgumentError as error:
      raise errors.UserError(
        f"{_reason(error)} It was at step {step:,}; the last checkpoint is"
        " whole."
      ) from error
    if writer is not None:
      watching.write_update(writer, step, self._look(planes, info.weights))
    if isinstance(self._buffer.replay.sampler, replay.PrioritizedSampler):
      self.pending = Priorities(info.ids.numpy(), per_example.numpy())
    return float(losses.numpy().mean(dtype=np.float64))

  def rewind(self) -> None:
    """Takes back the draw under way, so that it can be drawn again.

    Replay and its generator are then as if `prepare` had drawn nothing: the
    state that a checkpoint saves.
    """
    if self._next is not None:
      self._next.result()
      self._next = None
      generator = self._buffer.replay.generator
      generator.bit_generator.state = self._generator_before

  def close(self) -> None:
    """Ends the thread."""
    self._thread.shutdown()

  def _draw(self, beta: float) -> None:
    generator = self._buffer.replay.generator
    self._generator_before = generator.bit_generator.state
    self._next = self._thread.submit(
      self._buffer.sample_planes, *self._size, beta=beta, ends=True
    )

  def _updates(self, planes: Any, weights: tf.Tensor) -> Tuple[tf.Tensor, ...]:
    """Losses [K] and those of each example [K, B] of K updates in turn."""
    num_updates, batch_size = self._size

    def body(k, losses, per_example):
      info = self._agent.train(self._experience(planes, k), weights[k])
      return (
        k + 1,
        losses.write(k, info.loss),
        per_example.write(k, info.extra.td_loss),
      )

    _, losses, per_example = tf.while_loop(
      lambda k, *_: k < num_updates,
      body,
      (
        0,
        tf.TensorArray(tf.float32, num_updates, element_shape=[]),
        tf.TensorArray(tf.float32, num_updates, element_shape=[batch_size]),
      ),
      parallel_iterations=1,
    )
    return losses.stack(), per_example.stack()

  def _last_update(self, planes: Any, weights: tf.Tensor) -> updates.Update:
    """What one more update by the last batch would be.

    The updates themselves write no summaries: within their loop TensorFlow
    would name them after it, and count them by updates.
    """
    return self._agent.look(self._experience(planes, -1), weights[-1])

  def _experience(self, planes: Any, k: Any) -> Any:
    batch = tf.nest.map_structure(lambda part: part[k], planes)
    return self._buffer.from_planes(batch, stacks.stack_last_now)


def _reason(error: tf.errors.InvalidArgumentError) -> str:
  """The agent's own sentence in TensorFlow's long message."""
  first, last = "An update needs finite numbers", "lower the learning rate."
  text = error.message.replace("\n", " ").replace("] [", " ")
  if first not in text:
    raise error
  text = text[text.index(first) :].replace(" .", ".")
  return text[: text.find(last) + len(last)] if last in text else text
