"""Collector, learner and evaluator, each against the plain way of doing it."""

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors
from tf_mmdrl.evaluation import evaluator
from tf_mmdrl.policies.player import by_scores
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import (
  factories,
  presets,
  rounds,
  videos,
)


def evaluate(*changes):
  """CartPole gives 1 a step, so a score is a length."""
  config = train_fixtures.small("environment.name=CartPole-v1", *changes)
  player = evaluator.Evaluator(
    factories.environment(config, evaluation=True),
    by_scores(lambda seen: tf.stack([-seen[:, 2], seen[:, 2]], -1), 2),
    config.evaluation,
    seed=0,
  )
  return player.evaluate(step=1), player.evaluate(step=1)


def test_every_environment_plays_the_same_number_of_games():
  found, again = evaluate("evaluation.episodes=5", "evaluation.num_envs=3")
  assert len(found.scores) == 6  # 5 do not fall equally to 3
  assert found.scores == found.lengths
  assert found == again  # the same step has the same games
  assert all(1 < length <= 50 for length in found.lengths)


def test_by_steps_the_game_under_way_is_played_out():
  found, _ = evaluate("evaluation.steps=120", "evaluation.num_envs=1")
  assert sum(found.lengths[:-1]) < 120 <= sum(found.lengths)


def test_long_games_count_as_much_as_short_ones():
  """By steps, with games of 1 step that score 0 and of 99 that score 1.

  Half of the games are long. To count only what ends within the steps would
  leave out mostly long ones.
  """
  generator = np.random.default_rng(0)
  batch, share = 4_000, 150
  config = configs.EvaluationConfig(steps=batch * share, num_envs=batch)
  tally = evaluator._Tally(batch, config)
  length, age = np.zeros([2, batch], np.int64)  # of the games under way
  played, ended = np.zeros([batch], np.int64), []
  while not tally.done:
    first = age == length
    length = np.where(first, generator.choice([1, 99], batch), length)
    age = np.where(first, 0, age + 1)
    last = age == length
    kinds = [ts.StepType.FIRST, ts.StepType.LAST]
    kind = np.select([first, last], kinds, ts.StepType.MID)
    reward = (last & (length == 99)).astype(np.float64)
    tally.add(ts.TimeStep(kind, reward, None, None), reward)
    played += ~first
    ended += list(reward[last & (played <= share)])
  found = tally.result()
  assert set(found.lengths) == {1, 99}
  assert found.mean == pytest.approx(0.5, abs=0.02)
  assert np.mean(ended) < 0.45


def test_a_round_of_updates_is_its_updates_in_turn(make_state, tmp_path):
  one, other = make_state("agent.n_step=3"), make_state("agent.n_step=3")
  for state in (one, other):
    train_fixtures.play(state, 60)
  batches = one.experience.take(0.4)
  writer = tf.summary.create_file_writer(str(tmp_path))  # changes nothing
  one.learner.learn(batches, one.step, writer)
  planes, info = batches
  for k in range(one.config.round_updates):
    part = tf.nest.map_structure(lambda tensor, k=k: tensor[k], planes)
    other.agent.train(other.replay.shards[0].from_planes(part), info.weights[k])
  assert one.updates == other.updates == one.config.round_updates
  for mine, theirs in zip(
    one.agent.state_variables(), other.agent.state_variables()
  ):
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_draw_taken_back_is_drawn_again(make_state):
  state = make_state()
  train_fixtures.play(state, 60)
  state.experience.prepare(0.4)
  state.experience.rewind()
  first = state.experience.take(0.4)[1].ids.numpy()
  state.experience.prepare(0.4)
  second = state.experience.take(0.4)[1].ids.numpy()
  generator = state.replay.generator.bit_generator
  before = generator.state
  state.experience.rewind()  # there is nothing to take back any more
  assert generator.state == before
  assert not np.array_equal(first, second)
  fresh = make_state()
  train_fixtures.play(fresh, 60)
  np.testing.assert_array_equal(
    first, fresh.experience.take(0.4)[1].ids.numpy()
  )


def test_a_fresh_start_cuts_episodes_short_in_replay(make_state):
  state = make_state(
    "environment.name=Pong",
    "environment.num_envs=2",
    "environment.rebuild_period=12",  # 6 steps of each environment
  )
  (slot,) = state.slots
  state.slots = [slot._replace(running=np.full([2], 5.0))]
  train_fixtures.play(state, 8)
  assert state.step == 16
  assert not state.slots[0].running.any()  # nor does its score count
  stored = state.replay.shards[0].gather_all()
  types = stored.step_type.numpy()[0]
  # Six steps, the cut-off end, then two steps of a new game.
  expected = [ts.StepType.FIRST, *[ts.StepType.MID] * 5]
  expected += [ts.StepType.LAST, ts.StepType.FIRST, ts.StepType.MID]
  np.testing.assert_array_equal(types, expected)
  assert (stored.discount.numpy() == 1).all()  # no end of a game, for learning


def test_a_glimpse_is_three_observations_in_a_row():
  config = train_fixtures.small("environment.name=CartPole-v1")
  player = evaluator.Evaluator(
    factories.environment(config, evaluation=True),
    by_scores(lambda seen: tf.stack([-seen[:, 2], seen[:, 2]], -1), 2),
    config.evaluation,
    seed=0,
  )
  seen, glimpse = [], videos.Glimpse()

  def watch(time_step):
    seen.append(time_step.observation[0].copy())
    glimpse.add(time_step)

  found = player.evaluate(1, watch=watch)
  assert found == player.evaluate(1)  # watching changes nothing
  end = min(30, found.lengths[0] + 1)
  np.testing.assert_array_equal(glimpse.observations(), seen[end - 3 : end])


def test_munchausens_constants_are_in_units():
  config = configs.change(
    presets.get("classic"), ["agent.munchausen=true", "agent.n_step=1"]
  )
  made = factories.agent(config, factories.environment(config))
  rule = made._learning.target_rule.munchausen
  assert (rule.alpha, rule.lowest, rule.temperature) == (0.9, -1.0, 0.03)


@pytest.mark.parametrize(
  "step, wanted", [(0, 1.0), (200, 1.0), (300, 0.55), (400, 0.1), (900, 0.1)]
)
def test_exploration_falls_on_a_line(step, wanted):
  config = train_fixtures.small("schedule.epsilon_end=0.1")
  assert factories.epsilon(config, step) == pytest.approx(wanted)


@pytest.mark.parametrize(
  "shape, layers", [((84, 84, 4), 5), ((10, 10, 4), 3), ((4,), 3)]
)
def test_the_torso_follows_the_observation(shape, layers):
  net = factories.network(
    configs.Config().replace(network=dict(num_particles=3)),
    tf.TensorSpec(shape, tf.float32),
    tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
  )
  net.create_variables()
  assert len(net.trainable_weights) == 2 * layers


@pytest.mark.parametrize("xla", ["on", "off"])
def test_weights_for_actors_are_a_copy(make_state, xla):
  state = make_state(f"system.xla={xla}")
  train_fixtures.play(state, 60)
  weights = state.learner.weights()
  before = [value.numpy().copy() for value in weights.values]
  state.learner.learn(state.experience.take(0.4), state.step)
  for value, old in zip(weights.values, before):
    np.testing.assert_array_equal(value, old)
  now = state.learner.weights()
  assert any(np.any(a != b) for a, b in zip(now.values, before))
  assert now.progress > weights.progress


def test_a_failed_update_leaves_no_actor_playing(make_state):
  state = make_state()
  train_fixtures.play(state, 60)
  bias = state.agent.return_network.variables[-1]
  bias.assign(bias * np.nan)
  running = rounds.Rounds(state)
  with pytest.raises(errors.UserError, match="finite numbers"):
    running.play_and_learn()
  assert running._thread._work_queue.empty()
  running.close()


def test_the_learning_rate_falls_along_a_line_and_stays_there():
  settings = ("optimizer.learning_rate=0.01", "optimizer.final_share=0.1")
  config = train_fixtures.small(*settings)
  env = factories.environment(config)
  (group,) = factories.agent(config, env)._groups()
  rate, last = group.optimizer._learning_rate, config.num_updates
  found = [float(rate(step)) for step in (0, last // 2, last, 10 * last)]
  np.testing.assert_allclose(found, [0.01, 0.0055, 0.001, 0.001], rtol=1e-5)
  assert factories.learning_rate(train_fixtures.small(settings[0])) == 0.01
