"""A round of a run: the actor plays while the learner learns."""

from concurrent import futures
from typing import Optional

import tensorflow as tf

from tf_mmdrl.train import factories
from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.run_state import RunState


class Rounds:
  """Takes a run on, round by round.

  The actor plays by the weights that a round begins with, and what is learnt
  was drawn before it. So neither waits for the other, and what comes of a round
  does not depend on which is faster.
  """

  def __init__(self, state: RunState):
    """Starts the actor's thread."""
    self._state = state
    self._thread = futures.ThreadPoolExecutor(1, "mmdrl-actor")

  def play_and_learn(
    self, writer: Optional[tf.summary.SummaryWriter] = None
  ) -> Optional[float]:
    """Plays a round and learns one.

    Args:
      writer: for the summaries of this round, if any.

    Returns:
      The mean loss, or None before learning starts.
    """
    state, learnt, batches = self._state, None, None
    if self._has_begun(state.step):
      beta = factories.beta(state.config, state.step)
      batches = state.experience.take(beta)
    playing = self._thread.submit(self._gather, state.learner.weights())
    try:
      if batches is not None:
        learnt = state.learner.learn(batches, state.step, writer)
    finally:
      futures.wait([playing])  # whatever happens, nothing plays any more
    state.count(playing.result())
    if batches is None or learnt is None:
      return None
    state.experience.learnt(batches, learnt.losses)
    state.metrics.add_loss(learnt.loss)
    return learnt.loss

  def close(self) -> None:
    """Ends the thread."""
    self._thread.shutdown()

  def _gather(self, weights: Weights) -> Chunk:
    """Plays, stores what was played, and draws the next round's batches."""
    state = self._state
    chunk = state.play(weights, state.config.schedule.collect_steps)
    step = state.actor.step
    if self._has_begun(step):
      state.experience.prepare(factories.beta(state.config, step))
    return chunk

  def _has_begun(self, step: int) -> bool:
    return step >= self._state.config.schedule.learning_starts
