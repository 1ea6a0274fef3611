"""An actor: by which weights, chance and numbers it plays, and its scores."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
import train_fixtures
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors
from tf_mmdrl.train import actor as actors
from tf_mmdrl.train import factories

_CARTPOLE = "environment.name=CartPole-v1"
_GREEDY = ("schedule.epsilon_start=0", "schedule.epsilon_end=0")


def _weights(state, biases, progress=0.0):
  """Of a network that gives these particles [A, N], whatever it is shown."""
  given = state.learner.weights().values
  last = state.agent.return_network.trainable_weights[-1]
  values = []
  for variable, value in zip(state.agent.return_network.variables, given):
    if variable is last:
      value = tf.reshape(tf.constant(biases, tf.float32), value.shape)
    elif variable.trainable:
      value = tf.zeros_like(value)
    values.append(value)
  return actors.Weights(values, tf.constant(progress))


def _actions(chunk):
  return {int(a) for part in chunk.trajectories for a in part.action}


def test_it_plays_by_the_weights_it_is_given(make_state):
  state = make_state(_CARTPOLE, *_GREEDY, "agent.exploration=ucb:8->0")
  (actor,), (slot,) = state.actors, state.slots
  first, second = [[1.0] * 5, [0.0] * 5], [[0.0] * 5, [1.0] * 5]
  assert _actions(actor.play(slot, _weights(state, first), 3)[0]) == {0}
  assert _actions(actor.play(slot, _weights(state, second), 3)[0]) == {1}
  # The upper bound counts at the run's beginning, the mean at its end.
  uncertain = [[1.0] * 5, [-4.0, -2.0, 0.0, 2.0, 4.0]]
  for progress, wanted in ((0.0, 1), (1.0, 0)):
    given = _weights(state, uncertain, progress)
    assert _actions(actor.play(slot, given, 3)[0]) == {wanted}


def test_chance_depends_on_the_step(make_state, monkeypatch):
  state = make_state(_CARTPOLE, "schedule.learning_starts=16")
  (actor,), (slot,) = state.actors, state.slots
  asked, player = [], actor._player
  original = type(player).__call__

  def note(self, time_step, epsilon, number):
    asked.append((epsilon, number))
    return original(self, time_step, epsilon, number)

  monkeypatch.setattr(type(player), "__call__", note)
  weights = state.learner.weights()
  _, slot = actor.play(slot, weights, 4)
  actor.play(slot, weights, 3)
  steps = range(0, 28, 4)  # of four environments
  epsilon = factories.epsilon(state.config, np.array(steps)).tolist()
  assert epsilon[4] == 1 > epsilon[5] > epsilon[6]
  assert asked == list(zip(epsilon, steps))


def test_scores_are_the_games_own(make_state):
  """Each step of CartPole pays 1, so that a game's score is its length."""
  state = make_state(_CARTPOLE)
  (actor,), (slot,) = state.actors, state.slots
  weights, scores, ends = state.learner.weights(), [], []
  age, step = np.zeros([4]), 0
  for _ in range(6):
    chunk, slot = actor.play(slot, weights, 20)
    last_end = 0
    for number, part in enumerate(chunk.trajectories, 1):
      age += part.step_type != ts.StepType.LAST
      over = part.next_step_type == ts.StepType.LAST
      ends += age[over].tolist()
      age[over] = 0
      last_end = 4 * number if over.any() else last_end
    scores += chunk.scores
    assert chunk.last_end == last_end
    step += chunk.num_steps
    np.testing.assert_array_equal(slot.running, age)
  assert scores == ends and len(scores) > 10
  assert step == slot.step == 480


def test_a_saved_state_is_the_same_again(make_state):
  state = make_state(_CARTPOLE, "agent.exploration=bootstrapped")
  (actor,), (slot,) = state.actors, state.slots
  _, slot = actor.play(slot, state.learner.weights(), 5)
  assert slot.running.all() and slot.kept.all()
  back = actor.restored(*actor.save(slot))
  assert back.step == slot.step == 20
  np.testing.assert_array_equal(back.running, slot.running)
  np.testing.assert_array_equal(back.kept, slot.kept)


@pytest.mark.parametrize("name", ["reward", "observation"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_bad_numbers_are_named(name, bad):
  good = ts.TimeStep(
    np.full([2], ts.StepType.MID),
    np.zeros([2], np.float32),
    np.ones([2], np.float32),
    np.zeros([2, 3], np.float32),
  )
  actors._check(good)
  values = getattr(good, name).copy()
  values[1] = bad
  with pytest.raises(errors.UserError, match=f"gave the {name} {bad}$"):
    actors._check(good._replace(**{name: values}))


class _DrawsLate(gymnasium.Env):
  """Draws from NumPy's own generator, from its hundredth step on."""

  observation_space = gymnasium.spaces.Box(-1.0, 1.0, [2], np.float32)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self):
    self.steps = 0

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return np.zeros(2, np.float32), {}

  def step(self, action):
    self.steps += 1
    if self.steps > 100:
      np.random.random()
    return np.zeros(2, np.float32), 0.0, False, False, {}


gymnasium.register("DrawsLate-v0", entry_point=_DrawsLate)


def test_what_is_drawn_without_a_seed_is_noticed_as_it_plays(make_state):
  state = make_state("environment.name=DrawsLate-v0")
  (actor,) = state.actors
  train_fixtures.play(state, 90)
  actor.save(state.slots[0])
  assert actor.problem is None
  train_fixtures.play(state, 20)
  saved, environment = actor.save(state.slots[0])
  assert "depends on numpy.random" in actor.problem
  with pytest.raises(errors.UserError, match="depends on numpy.random.*fresh"):
    actor.restored(saved, environment)
