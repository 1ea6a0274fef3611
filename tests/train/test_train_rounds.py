"""A round: in which order parts of a run are asked, and with what."""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures

from tf_mmdrl.core import errors
from tf_mmdrl.train import factories, learner, rounds

_CARTPOLE = "environment.name=CartPole-v1"


def test_draws_priorities_and_their_order(make_state, monkeypatch):
  """A round's priorities reach replay before the draw of the next but one.

  The learner is a stand-in: what is told here is not what is learnt.
  """
  state = make_state(_CARTPOLE, "replay.prioritized=true", "schedule.steps=320")
  train_fixtures.play(state, 60)
  events, drawn, learnt = [], [], []
  replay = state.experience.replay
  sample, update = replay.sample_planes, replay.update_priorities

  def note_draw(*args, beta, **options):
    events.append(("draw", beta))
    drawn.append(sample(*args, beta=beta, **options))
    return drawn[-1]

  def note_priorities(ids, losses):
    events.append(("priorities", ids.tolist(), losses.tolist()))
    update(ids, losses)
    assert state.experience.pending is not None  # in the midst of `prepare`

  def learn(batches, step, writer):
    del writer
    learnt.append((batches[1].ids.numpy().tolist(), step))
    losses = np.full(batches[1].ids.shape, 2.0 + len(learnt), np.float32)
    return learner.Learnt(float(losses.mean()), losses)

  monkeypatch.setattr(replay, "sample_planes", note_draw)
  monkeypatch.setattr(replay, "update_priorities", note_priorities)
  monkeypatch.setattr(state.learner, "learn", learn)
  running = rounds.Rounds(state)
  assert running.play_and_learn() == 3.0
  assert running.play_and_learn() == 4.0
  running.close()
  ids = [batches[1].ids.numpy().tolist() for batches in drawn]
  assert learnt == [(ids[0], 240), (ids[1], 256)]
  beta = [factories.beta(state.config, step) for step in (240, 256, 272)]
  losses = np.full(np.shape(ids[0]), 3.0).tolist()
  assert events == [
    ("draw", beta[0]),
    ("draw", beta[1]),
    ("priorities", ids[0], losses),
    ("draw", beta[2]),
  ]
  assert state.experience.pending.ids.tolist() == ids[1]
  assert (state.experience.pending.losses == 4).all()
  summed = state.metrics.state()
  assert (summed["loss_sum"], summed["losses"]) == (7.0, 2)
  state.experience.prepare(0.5)
  assert state.experience.pending is None


def test_a_round_is_played_by_the_weights_it_began_with(
  make_state, monkeypatch
):
  state = make_state(_CARTPOLE)
  train_fixtures.play(state, 60)
  (actor,), given, play = state.actors, [], state.actors[0].play
  last = state.agent.return_network.trainable_weights[-1]

  def note(slot, weights, num_steps):
    time.sleep(0.1)  # the learner has ended before
    given.append([np.array(value) for value in weights.values])
    return play(slot, weights, num_steps)

  def learn(batches, *_):
    last.assign_add(tf.ones_like(last))
    return learner.Learnt(1.0, np.ones(batches[1].ids.shape, np.float32))

  monkeypatch.setattr(actor, "play", note)
  monkeypatch.setattr(state.learner, "learn", learn)
  began = [np.array(v) for v in state.learner.weights().values]
  running = rounds.Rounds(state)
  running.play_and_learn()
  running.play_and_learn()
  running.close()
  first, second = given
  for one, other in zip(first, began, strict=True):
    np.testing.assert_array_equal(one, other)
  assert sum(np.any(a != b) for a, b in zip(first, second, strict=True)) == 1


def test_actors_play_while_the_learner_learns(make_state, monkeypatch):
  """Each waits here for the other to be under way."""
  state = make_state(_CARTPOLE)
  train_fixtures.play(state, 60)
  (actor,), play = state.actors, state.actors[0].play
  playing, learning = threading.Event(), threading.Event()

  def meet(slot, weights, num_steps):
    playing.set()
    assert learning.wait(20)
    return play(slot, weights, num_steps)

  def learn(batches, *_):
    learning.set()
    assert playing.wait(20)
    return learner.Learnt(1.0, np.ones(batches[1].ids.shape, np.float32))

  monkeypatch.setattr(actor, "play", meet)
  monkeypatch.setattr(state.learner, "learn", learn)
  running = rounds.Rounds(state)
  assert running.play_and_learn() == 1.0
  running.close()


def test_learning_starts_with_its_step(make_state):
  state = make_state(_CARTPOLE, "schedule.learning_starts=192")
  running = rounds.Rounds(state)
  assert [running._has_begun(step) for step in (191, 192)] == [False, True]
  running.close()


def test_an_actor_has_ended_when_an_update_failed(make_state, monkeypatch):
  state = make_state(_CARTPOLE)
  train_fixtures.play(state, 60)
  (actor,), ended = state.actors, []
  play = actor.play

  def late(*args):
    time.sleep(0.1)
    ended.append(play(*args))
    return ended[-1]

  def fail(*_):
    raise errors.UserError("no update")

  monkeypatch.setattr(actor, "play", late)
  monkeypatch.setattr(state.learner, "learn", fail)
  running = rounds.Rounds(state)
  with pytest.raises(errors.UserError, match="no update"):
    running.play_and_learn()
  assert ended
  running.close()
