"""Actor slots: each a function of its state, together one run."""

import time

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures

from tf_mmdrl.core import errors
from tf_mmdrl.train import factories, rounds
from tf_mmdrl.train.actor import Chunk

_PONG = [
  "environment.name=Pong",
  "environment.num_envs=2",
  "environment.rebuild_period=12",  # 6 steps of each environment
]


def _assert_same(one, other):
  tf.nest.map_structure(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize(
  "changes",
  [["agent.exploration=bootstrapped"], _PONG],
  ids=["minatar", "pong"],
)
def test_play_is_a_function_of_its_arguments(make_state, changes):
  """Of no other actor, process or moment; also back in time, and elsewhere."""
  config = ["schedule.epsilon_start=0.5", "schedule.epsilon_end=0.5", *changes]
  state = make_state(*config)
  (actor,), (begin,) = state.actors, state.slots
  weights = state.learner.weights()
  saved = [np.array(begin.running), np.array(begin.kept)]
  first, middle = actor.play(begin, weights, 5)
  second, end = actor.play(middle, weights, 7)
  _assert_same(saved, [begin.running, begin.kept])
  again, middle_again = actor.play(begin, weights, 5)
  _assert_same(first, again)
  _assert_same(middle[:3], middle_again[:3])
  elsewhere = make_state(*config)
  (other,) = elsewhere.actors
  other.play(*elsewhere.slots, elsewhere.learner.weights(), 3)
  other._player.kept = 1 - middle.kept
  chunk, end_again = other.play(middle, weights, 7)
  _assert_same(second, chunk)
  _assert_same(end[:3], end_again[:3])
  _assert_same(actor.save(end)[1], other.save(end_again)[1])
  _assert_same(actor.play(end, weights, 3)[0], other.play(end, weights, 3)[0])


def test_a_long_record_begins_anew_at_a_saved_state(make_state):
  state = make_state("environment.name=CartPole-v1")
  (actor,), (begin,) = state.actors, state.slots
  weights = state.learner.weights()
  _, late = actor.play(begin, weights, 255)
  assert late.moment.num_actions == 255
  chunk, later = actor.play(late, weights, 1)
  assert later.moment.num_actions == 0  # 256 would have to be played again
  after, _ = actor.play(later, weights, 9)
  actor.play(begin, weights, 1)
  _assert_same(chunk, actor.play(late, weights, 1)[0])
  _assert_same(after, actor.play(later, weights, 9)[0])


def test_slots_share_environments_and_capacity(make_state):
  one, two = make_state(), make_state("system.actors=2")
  begins = two.slots
  for state in (one, two):
    train_fixtures.play(state, 60)
  assert one.step == two.step == two.steps_played == 240
  assert one.replay.num_steps == two.replay.num_steps == 240
  sizes = [sum(s.nbytes for s in x.replay.shards) for x in (one, two)]
  assert sizes[0] == sizes[1]
  periods = {a.environment._period for x in (one, two) for a in x.actors}
  assert periods == {256 // 4}  # steps of each environment
  weights = two.learner.weights()
  kept = [shard.gather_all() for shard in two.replay.shards]
  for actor, begin, shard in zip(two.actors, begins, kept):
    chunk, _ = actor.play(begin, weights, 60)
    for name in ("observation", "action"):
      played = [getattr(part, name) for part in chunk.trajectories]
      _assert_same(np.stack(played, axis=1), getattr(shard, name))
  # Seeds are a slot's own: no environment plays what another one does.
  for name in ("observation", "action"):
    rows = np.concatenate([getattr(shard, name) for shard in kept])
    assert len({row.tobytes() for row in rows}) == len(rows) == 4
  seeds = [factories.seeds(two.config, slot) for slot in (0, 1)]
  assert seeds[0] == factories.seeds(one.config)
  assert all(a != b for a, b in zip(*seeds))


def test_every_slot_plays_its_own_actions_again(make_state):
  """Of games that cannot be saved; a round after they started afresh."""
  state, other = (make_state(*_PONG, "system.actors=2") for _ in range(2))
  train_fixtures.play(state, 9)
  state.save()
  assert other.restore(pytest.fail, clean=False)
  assert other.fingerprints() == state.fingerprints()
  for one in (state, other):
    train_fixtures.play(one, 2)
  assert other.fingerprints() == state.fingerprints()


def test_what_no_checkpoint_needs_goes_from_every_slot(make_state, tmp_path):
  state = make_state("system.actors=2", "replay.capacity=100")
  counts = []
  for _ in range(6):
    train_fixtures.play(state, 30)  # more than replay keeps
    state.save()
    directories = tmp_path.glob("checkpoints/replay*")
    counts.append([len(list(path.iterdir())) for path in directories])
  assert len(counts[-1]) == 2 and counts[-1] == counts[-3]


def test_a_game_ends_with_a_step_of_the_run(make_state):
  """All slots had played as many steps as the one whose game ended."""
  state = make_state("system.actors=2")
  train_fixtures.play(state, 1)
  state.count([Chunk([], 8, [], 0), Chunk([], 8, [3.0, 1.0], 6)])
  assert (state.step, state.metrics.last_game) == (20, 4 + 2 * 6)
  assert state.metrics.episodes == 2


def test_all_slots_explore_by_the_step_of_the_run(make_state):
  state = make_state("system.actors=2", "schedule.epsilon_end=0.1")
  for actor in state.actors:
    found = actor._epsilon(np.array([150]))
    assert found == factories.epsilon(state.config, np.array([300])) < 1


@pytest.mark.parametrize(
  "prioritized", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_it_does_not_matter_who_is_faster(make_state, monkeypatch, prioritized):
  """Whichever part is slow, and with actors in turn, the run is the same."""
  state = make_state(
    "system.actors=2",
    "schedule.epsilon_end=0.5",
    f"replay.prioritized={prioritized}",
  )
  train_fixtures.play(state, 60)
  state.save()
  prints = [_after_rounds(state)]
  first, second = state.actors
  for part, name in (
    (first, "play"),
    (second, "play"),
    (state.learner, "learn"),
  ):
    with monkeypatch.context() as patch:
      patch.setattr(part, name, _late(getattr(part, name)))
      prints.append(_after_rounds(state))
  in_turn = lambda _, function, slots: list(map(function, slots))  # noqa: E731
  monkeypatch.setattr(rounds.Rounds, "_together", in_turn)
  prints.append(_after_rounds(state))
  assert prints == prints[:1] * 5


def _late(function):
  def late(*args):
    time.sleep(0.03)
    return function(*args)

  return late


def _after_rounds(state):
  """The run, rounds after its checkpoint."""
  assert state.restore(pytest.fail, clean=False)
  running = rounds.Rounds(state)
  for _ in range(8):
    running.play_and_learn()
  running.close()
  return state.fingerprints()


def test_a_checkpoint_is_gone_back_to_in_the_midst_of_a_run(make_state):
  """What was drawn for the next round is of the run that is left."""
  state = make_state("system.actors=2", "schedule.epsilon_end=0.5")
  train_fixtures.play(state, 60)
  state.save()
  wanted = _after_rounds(state)
  running = rounds.Rounds(state)
  running.play_and_learn()
  running.close()
  assert _after_rounds(state) == wanted


def test_a_slot_that_fails_leaves_no_other_playing(make_state):
  state = make_state("system.actors=2")
  ended = []

  def fail(*_):
    raise errors.UserError("no such game")

  def note(*args, play=state.actors[1].play):
    ended.append(play(*args))
    return ended[-1]

  state.actors[0].play, state.actors[1].play = fail, _late(note)
  running = rounds.Rounds(state)
  before = state.replay.num_steps
  with pytest.raises(errors.UserError, match="no such game"):
    running.play_and_learn()
  assert ended and state.replay.num_steps == before
  running.close()


def test_environments_must_fall_equally_to_actors():
  with pytest.raises(errors.UserError, match="system.actors.*got 4 for 3"):
    train_fixtures.small("system.actors=3")
