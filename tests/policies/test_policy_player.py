"""The one way from a network to an action, by what it must never do."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import choosing
from tf_mmdrl.networks import ReturnNetwork, heads
from tf_mmdrl.policies import ArrayPlayer, Player, ReturnPolicy, scores
from tf_mmdrl.policies.player import by_scores

_OBSERVATION = tf.TensorSpec([4], tf.float32)
_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
_B = 2000
_SCORES = tf.constant([[0.0, 2.0, 1.0]] * _B)


def _chosen(epsilon, mask=None, seed=(1, 2)):
  drawn = choosing.chance(tf.constant(seed), _B, 3)
  actions = choosing.choose(_SCORES, mask, tf.constant(epsilon), drawn)
  return np.bincount(actions.numpy(), minlength=3) / _B


def test_epsilon_is_the_share_of_random_actions():
  np.testing.assert_array_equal(_chosen(0.0), [0, 1, 0])
  np.testing.assert_allclose(_chosen(0.3), [0.1, 0.8, 0.1], atol=0.03)
  np.testing.assert_allclose(_chosen(1.0), [1 / 3] * 3, atol=0.04)


def test_no_way_leads_to_a_forbidden_action():
  mask = tf.constant([[1, 0, 1]] * _B)
  np.testing.assert_array_equal(_chosen(0.0, mask), [0, 0, 1])
  np.testing.assert_allclose(_chosen(0.5, mask), [0.25, 0, 0.75], atol=0.04)
  only = tf.constant([[1, 0, 0]] * _B)
  np.testing.assert_array_equal(_chosen(0.5, only), [1, 0, 0])
  lowest = choosing.largest(tf.constant([[-1e30, 5.0]]), tf.constant([[1, 0]]))
  assert lowest.numpy() == [0]


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("mask", [None, [1, 0, 1]])
def test_probabilities_are_those_of_the_choice(epsilon, mask):
  if mask is not None:
    mask = tf.constant([mask] * _B)
  stated = choosing.probabilities(_SCORES, mask, tf.constant(epsilon))
  np.testing.assert_allclose(stated[0], _chosen(epsilon, mask), atol=0.04)
  np.testing.assert_allclose(tf.reduce_sum(stated, -1), np.ones(_B), rtol=1e-6)


def _network(**options):
  tf.keras.utils.set_random_seed(0)
  net = ReturnNetwork(
    _OBSERVATION, _ACTION, heads.particles(6), fc_layer_params=(8,), **options
  )
  net.create_variables()
  return net


def _step(batch=64, first=True):
  seen = np.random.default_rng(0).normal(size=[batch, 4]).astype("f")
  kind = ts.StepType.FIRST if first else ts.StepType.MID
  zeros = np.zeros([batch], np.float32)
  return ts.TimeStep(np.full([batch], kind), zeros, zeros + 1, seen)


def test_the_same_seed_and_number_give_the_same_actions():
  net = _network()
  player = Player(net, 3, score=scores.Thompson())
  one, other = (ArrayPlayer(player.act, 3, seed=5) for _ in range(2))
  another = ArrayPlayer(player.act, 3, seed=6)
  step = _step()
  for number in (7, 2**33):  # whatever came before, and beyond 32 bits
    np.testing.assert_array_equal(
      one(step, 0.3, number), other(step, 0.3, number)
    )
  assert np.any(one(step, 0.3, 8) != one(step, 0.3, 9))
  assert np.any(one(step, 0.3, 8) != another(step, 0.3, 8))


def test_noise_is_fresh_for_every_choice_and_off_in_evaluation():
  net = _network(noisy_layers=True)
  noisy = ArrayPlayer(Player(net, 3, noisy=True).act, 3)
  quiet = ArrayPlayer(Player(net, 3).act, 3)
  step = _step(512)
  assert np.any(noisy(step, 0.0, 0) != noisy(step, 0.0, 1))
  np.testing.assert_array_equal(quiet(step, 0.0, 0), quiet(step, 0.0, 1))


def test_a_bootstrapped_draw_lasts_an_episode():
  act = Player(_network(), 3, score=scores.Bootstrapped()).act
  player = ArrayPlayer(act, 3)
  player(_step(), 0.0, 0)
  kept = player.kept
  player(_step(first=False), 0.0, 1)
  np.testing.assert_array_equal(player.kept, kept)
  player(_step(), 1.0, 2)  # all random, and a new episode all the same
  assert np.all(player.kept != kept)


def test_random_play_does_not_depend_on_the_network():
  """Random steps draw what they would draw beside ones that are not."""
  act = by_scores(lambda seen: tf.zeros([tf.shape(seen)[0], 3]), 3)
  player = ArrayPlayer(act, 3, seed=1)
  almost = player(_step(), 1.0 - 1e-7, 4)
  np.testing.assert_array_equal(player(_step(), 1.0, 4), almost)


def test_the_policy_and_the_array_player_are_one():
  net, step = _network(), _step()
  policy = ReturnPolicy(
    ts.time_step_spec(_OBSERVATION), _ACTION, net, epsilon=0.4
  )
  tensors = tf.nest.map_structure(tf.constant, step)
  actions = policy.action(tensors, seed=tf.constant([3, 9], tf.int64)).action
  played = ArrayPlayer(Player(net, 3).act, 3, seed=3)(step, 0.4, 9)
  np.testing.assert_array_equal(actions, played)


@pytest.mark.parametrize(
  "score", [scores.Mean(), scores.Boltzmann(0.05), scores.CVaR(0.3)]
)
def test_log_probabilities_are_of_the_actions_taken(score):
  policy = ReturnPolicy(
    ts.time_step_spec(_OBSERVATION),
    _ACTION,
    _network(),
    score=score,
    epsilon=0.2,
    emit_log_probability=True,
  )
  step = tf.nest.map_structure(tf.constant, _step(1))
  stated = policy.distribution(step).action.probs_parameter().numpy()[0]
  counts = np.zeros(3)
  act = tf.function(policy.action)
  for _ in range(1500):
    taken = act(step)
    action = int(taken.action[0])
    counts[action] += 1
    wanted = np.log(stated[action])
    np.testing.assert_allclose(taken.info.log_probability, [wanted], rtol=1e-5)
  np.testing.assert_allclose(counts / 1500, stated, atol=0.05)
