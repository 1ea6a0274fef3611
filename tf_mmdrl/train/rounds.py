"""A round of a run: actors play while the learner learns."""

from concurrent import futures
from typing import Any, Callable, List, Optional, Sequence

import tensorflow as tf

from tf_mmdrl.train import factories
from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.run_state import RunState


class Rounds:
  """Takes a run on, round by round.

  Actors play by the weights that a round begins with, and what is learnt was
  drawn before it. So neither waits for the other, and what comes of a round
  does not depend on which is faster.
  """

  def __init__(self, state: RunState):
    """Starts a thread for each actor; the first one's also stores and draws."""
    self._state = state
    self._thread = futures.ThreadPoolExecutor(1, "mmdrl-actor-0")
    others = max(1, len(state.actors) - 1)
    self._others = futures.ThreadPoolExecutor(others, "mmdrl-actor")

  def play_and_learn(
    self, writer: Optional[tf.summary.SummaryWriter] = None
  ) -> Optional[float]:
    """Plays a round and learns one.

    Args:
      writer: writes the summaries of this round, if not None.

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

  def settle(self) -> None:
    """Before a checkpoint: nothing is under way between two rounds."""

  def close(self) -> None:
    """Ends the threads."""
    self._thread.shutdown()
    self._others.shutdown()

  def _gather(self, weights: Weights) -> List[Chunk]:
    """Plays, stores what was played, and draws the next round's batches."""
    state, steps = self._state, self._state.config.schedule.collect_steps
    chunks = state.play(weights, steps, self._together)
    step = state.steps_played
    if self._has_begun(step):
      state.experience.prepare(factories.beta(state.config, step))
    return chunks

  def _together(
    self, function: Callable[[int], Any], slots: Sequence[int]
  ) -> List[Any]:
    """Calls as `map`, but at the same time; returns when all have ended."""
    first, *others = slots
    running = [self._others.submit(function, slot) for slot in others]
    try:
      result = function(first)
    finally:
      futures.wait(running)
    return [result, *(one.result() for one in running)]

  def _has_begun(self, step: int) -> bool:
    return step >= self._state.config.schedule.learning_starts
