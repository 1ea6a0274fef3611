"""Runs in free order go on with another number of actors."""

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.cluster import slot_player
from tf_mmdrl.core import errors
from tf_mmdrl.train import (
  environment_states,
  regrouped_actors,
  run_directory,
  run_state,
)

_FREE = ["system.order=free", "schedule.epsilon_end=0.5", "agent.n_step=2"]
_PONG = [
  "environment.name=Pong",
  "environment.rebuild_period=64",
  "replay.capacity=200",  # 50 of each environment, so that old ones go
]
_MINATAR = ["replay.prioritized=true"]


def _state(path, actors, *changes):
  config = train_fixtures.small(f"system.actors={actors}", *_FREE, *changes)
  return run_state.RunState(config, run_directory.RunDirectory(path))


def _play(state, slot, num_steps):
  where = state.slots[slot]
  weights = state.learner.weights()
  state.receive(slot, *state.actors[slot].play(where, weights, num_steps))


def _rows(state):
  """What replay has of each environment: arrays over time, and priorities."""
  found = []
  for shard in state.replay.shards:
    store = shard.replay.store
    weights = shard.replay.sampler.state()[1].get("weights")
    for row in range(store.batch_size):
      times = np.arange(store.oldest[row], store.head)
      ids = times * store.batch_size + row
      fields = [part[:, 0] for part in shard.replay.read(ids, 1)]
      if weights is not None:
        places = row * store.max_length + times % store.max_length
        fields.append(weights[places])
      found.append(fields)
  return found


def _require_same(one, other):
  assert len(one) == len(other)
  for rows in zip(one, other):
    for arrays in zip(*rows, strict=True):
      np.testing.assert_array_equal(*arrays)


@pytest.mark.parametrize(
  "changes, number",
  [(_MINATAR, 1), pytest.param(_PONG, 4, marks=pytest.mark.slow)],
  ids=["minatar", "pong"],
)
def test_another_number_of_actors_loses_nothing(tmp_path, changes, number):
  """Not a step, nor a priority; games under way are cut, and so is replay."""
  before = _state(tmp_path, 2, *changes)
  _play(before, 0, 35)
  _play(before, 1, 61)
  if before.replay.is_prioritized:
    batches = before.experience.take(0.5)
    losses = np.arange(batches[1].ids.shape.num_elements(), dtype=np.float32)
    losses = losses.reshape(batches[1].ids.shape)
    before.experience.learnt(batches, losses)
  before.save()
  after = _state(tmp_path, number, *changes)
  assert after.restore(pytest.fail, clean=True)
  if before.replay.is_prioritized:
    before.replay.update_priorities(*before.experience.pending)
  rows = _rows(before)
  _require_same(rows, _rows(after))
  assert after.step == before.step == after.steps_played
  # It is a run like any other: it is saved, and goes on from there.
  after.save()
  again = _state(tmp_path, number, *changes)
  assert again.restore(pytest.fail, clean=True)
  assert again.fingerprints() == after.fingerprints()
  for state in (after, again):
    for slot in range(number):
      _play(state, slot, 3)
  assert again.fingerprints() == after.fingerprints()
  step_type = 0
  for old, new in zip(rows, _rows(after)):
    own = len(new[0]) - 4  # a fresh start is no step, and is in replay
    for part, whole in zip(old, new):
      if whole.dtype != np.float32 or changes is _PONG:  # but for priorities
        np.testing.assert_array_equal(part[-own:], whole[:own])
    assert new[step_type][own] == ts.StepType.LAST
    assert new[step_type][own + 1] == ts.StepType.FIRST
  for state in (before, after, again):
    state.close()


def test_what_other_slots_wrote_is_removed_with_their_checkpoints(tmp_path):
  before = _state(tmp_path, 4)
  _play(before, 0, 20)
  before.save()
  before.close()
  after = _state(tmp_path, 2)
  assert after.restore(pytest.fail, clean=True)
  for kept in (4, 4, 2):
    names = {path.name for path in (tmp_path / "checkpoints").glob("replay*")}
    assert len(names) == kept
    _play(after, 1, 5)
    after.save()
  after.close()


def test_an_actor_that_takes_over_begins_the_same_games(tmp_path):
  """Which begin after the cut, also for one that was not there before it."""
  state = _state(tmp_path, 2)
  _play(state, 0, 9)
  plain = [
    {**one, "environment": environment.plain}
    for one, environment in state._saved_actors()
  ]
  (one,) = regrouped_actors.actors(plain, 1)
  none = np.zeros([0, 4], np.int64)
  config = train_fixtures.small("system.actors=1", *_FREE)
  weights = state.learner.weights()
  players = [slot_player.SlotPlayer(config, 0) for _ in range(2)]
  there = environment_states.EnvironmentState(one["environment"], none)
  move = players[0].restored(one, there)
  place = slot_player.Place(
    move.token, move.step, move.running, move.kept, [move.course], none, 0
  )
  chunks = [player.play(place, weights, 3)[0] for player in players]
  for mine, other in zip(*(tf.nest.flatten(c.steps) for c in chunks)):
    np.testing.assert_array_equal(mine, other)
  assert (chunks[0].steps.step_type[0] == ts.StepType.LAST).all()
  for closed in (state, *players):
    closed.close()


@pytest.mark.parametrize("order", ["free", "exact"])
def test_only_free_order_takes_another_number(tmp_path, order):
  """In exact order the number decides what the run comes to."""
  two, four = (
    train_fixtures.small(f"system.actors={n}", f"system.order={order}")
    for n in (2, 4)
  )
  directory = run_directory.RunDirectory(tmp_path / "run")
  directory.open_for_training(two)
  directory.close()
  if order == "free":
    directory.open_for_training(four)
    assert directory.config().system.actors == 4
  else:
    with pytest.raises(errors.UserError, match="system.actors: 2 -> 4"):
      directory.open_for_training(four)
  directory.close()
