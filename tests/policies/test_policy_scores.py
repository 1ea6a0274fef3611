"""Scores against NumPy, and as TF-Agents policies."""

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from tf_agents.policies import policy_saver
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors, score_words
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks import ReturnNetwork, heads, implicit_heads
from tf_mmdrl.policies import ReturnPolicy, score_names, scores

_OBSERVATION = tf.TensorSpec([4], tf.float32)
_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
_STEP = ts.time_step_spec(_OBSERVATION)


def _distributions(weighted, num=9):
  rng = np.random.default_rng(0)
  values = np.float32(rng.normal(size=[5, 3, num]))
  if not weighted:
    return ReturnDistribution(tf.constant(values))
  logits = tf.constant(rng.normal(size=[5, 3, num]), tf.float32)
  return ReturnDistribution(tf.constant(values), tf.nn.log_softmax(logits))


def _distorted(values, weights, level):
  """E[Z at level(tau)], tau uniform, on a fine grid of tau."""
  tau = (np.arange(200_000) + 0.5) / 200_000
  order = np.argsort(values)
  ends = np.cumsum(weights[order])
  index = np.searchsorted(ends / ends[-1], level(tau))
  return values[order][np.minimum(index, len(values) - 1)].mean()


def _cpw(tau, eta=0.71):
  return tau**eta / (tau**eta + (1 - tau) ** eta) ** (1 / eta)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("text", ["wang:3", "wang:-3", "cpw:0.5"])
def test_distortions_lose_no_mass(text, weighted):
  distributions = _distributions(weighted, num=1000)
  shifted = distributions.map_values(lambda z: z + 100.0)
  score = score_names.parse(text)
  np.testing.assert_allclose(
    score(shifted, tf.zeros([])) - score(distributions, tf.zeros([])),
    np.full([5, 3], 100.0),
    rtol=1e-5,
  )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
  "score, level",
  [
    (scores.CVaR(0.3), lambda tau: 0.3 * tau),
    (scores.CVaR(1.0), lambda tau: tau),
    (
      scores.Wang(-0.75),
      lambda tau: scipy.stats.norm.cdf(scipy.stats.norm.ppf(tau) - 0.75),
    ),
    (scores.CPW(0.71), _cpw),
  ],
)
def test_risk_is_the_mean_at_distorted_levels(score, level, weighted):
  """IQN's definition: levels are mapped, quantiles averaged."""
  made = _distributions(weighted)
  got = score(made, tf.zeros([])).numpy()
  weights = made.weights().numpy()
  for b, a in np.ndindex(5, 3):
    wanted = _distorted(made.values.numpy()[b, a], weights[b, a], level)
    assert got[b, a] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_deviations(weighted):
  made = _distributions(weighted)
  z, w = np.float64(made.values), np.float64(made.weights())
  mean = np.sum(z * w, -1)
  deviation = np.sqrt(np.sum(w * (z - mean[..., None]) ** 2, -1))
  for score, wanted in (
    (scores.Mean(), mean),
    (scores.UpperConfidence(0.7), mean + 0.7 * deviation),
    (scores.UpperConfidence(lambda: tf.constant(2.0)), mean + 2 * deviation),
    (scores.MeanDeviation(0.3), mean - 0.3 * deviation),
  ):
    np.testing.assert_allclose(score(made, tf.zeros([])), wanted, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_thompson_draws_by_weight(weighted):
  made = _distributions(weighted, num=4)
  uniform = (np.arange(4000) + 0.5) / 4000
  draws = np.stack(
    [
      scores.Thompson()(made, tf.fill([5, 3], np.float32(u))).numpy()
      for u in uniform[::10]
    ]
  )
  values, weights = made.values.numpy(), made.weights().numpy()
  for b, a in np.ndindex(5, 3):
    for value, weight in zip(values[b, a], weights[b, a]):
      share = np.mean(draws[:, b, a] == value)
      assert share == pytest.approx(weight, abs=0.006)


def test_boltzmann_frequencies_are_a_softmax():
  made = ReturnDistribution(tf.constant([[[0.0], [0.5], [1.0]]]))
  uniform = tf.random.stateless_uniform([20_000, 3], [1, 2])
  repeated = made.map_values(lambda z: tf.repeat(z, 20_000, axis=0))
  chosen = tf.argmax(scores.Boltzmann(0.5)(repeated, uniform), axis=-1)
  share = np.bincount(chosen, minlength=3) / 20_000
  wanted = np.exp([0, 1, 2]) / np.sum(np.exp([0, 1, 2]))
  np.testing.assert_allclose(share, wanted, atol=0.015)


def _policy(head=None, **options):
  tf.keras.utils.set_random_seed(0)
  net = ReturnNetwork(
    _OBSERVATION, _ACTION, head or heads.particles(6), fc_layer_params=(8,)
  )
  net.create_variables()
  return ReturnPolicy(_STEP, _ACTION, net, **options)


_ALL = [
  "mean",
  "thompson",
  "bootstrapped",
  "boltzmann:0.1",
  "ucb:1",
  "cvar:0.25",
  "mean_deviation:0.5",
  "wang:-0.75",
  "cpw:0.71",
]


_HEADS = pytest.mark.parametrize(
  "head", [heads.particles(6), heads.weighted_particles(6)]
)
# One that has a state, one that draws and one that sorts particles.
_TELLING = ["bootstrapped", "boltzmann:0.1", "cpw:0.71"]


@pytest.mark.parametrize("text", _ALL)
@_HEADS
def test_each_is_a_batched_policy(text, head):
  policy = _policy(head, score=score_names.parse(text), epsilon=0.1)
  # A graph for any batch size, as exports have.
  specs = (policy.time_step_spec, policy.policy_state_spec)
  graph = tf.function(
    policy.action,
    autograph=False,
    input_signature=tensor_spec.add_outer_dim(specs),
  )
  for batch in (1, 7):
    step = ts.restart(tf.random.normal([batch, 4]), batch)
    state = policy.get_initial_state(batch)
    for action in (policy.action, graph):
      taken = action(step, state).action
      assert taken.shape == [batch]
      assert set(taken.numpy()) <= {0, 1, 2}


@pytest.mark.parametrize(
  "text",
  [
    text if text in _TELLING else pytest.param(text, marks=pytest.mark.slow)
    for text in _ALL
  ],
)
@_HEADS
def test_each_is_exportable(text, head, tmp_path):
  policy = _policy(head, score=score_names.parse(text), epsilon=0.1)
  saver = policy_saver.PolicySaver(policy, batch_size=None)
  saver.save(str(tmp_path))
  loaded = tf.saved_model.load(str(tmp_path))
  for batch in (1, 7):
    step = ts.restart(tf.random.normal([batch, 4]), batch)
    again = loaded.action(step, loaded.get_initial_state(batch))
    assert again.action.shape == [batch]
    assert set(again.action.numpy()) <= {0, 1, 2}


@pytest.mark.parametrize(
  "head", [heads.particles(6), implicit_heads.implicit(6)]
)
def test_a_bootstrapped_particle_is_kept_through_an_episode(head):
  policy = _policy(head, score=scores.Bootstrapped(), noisy=True)
  observation = tf.random.normal([64, 4])
  first = policy.action(
    ts.restart(observation, 64), policy.get_initial_state(64)
  )
  step = ts.transition(observation, tf.zeros([64]))
  second = policy.action(step, first.state)
  np.testing.assert_array_equal(first.action, second.action)
  np.testing.assert_array_equal(first.state, second.state)
  anew = policy.action(ts.restart(observation, 64), second.state)
  assert np.any(anew.state != second.state)


def test_a_schedule_follows_the_run():
  share = tf.Variable(0.0)
  score = score_names.parse("ucb:2->0.5", lambda: share)
  made = _distributions(False)
  mean, deviation = made.mean(), made.deviation()
  for now, beta in ((0.0, 2.0), (0.5, 1.25), (1.0, 0.5), (3.0, 0.5)):
    share.assign(now)
    np.testing.assert_allclose(
      score(made, tf.zeros([])), mean + beta * deviation, atol=1e-5
    )


@pytest.mark.parametrize(
  "text, message",
  [
    ("cvar:0", r"level must be in \(0, 1\], got 0"),
    ("cvar:1.5", r"level must be in \(0, 1\], got 1.5"),
    ("cvar", "wants a number"),
    ("cvar:low", "wants a number"),
    ("cvar:1->0.5", "not a schedule"),
    ("ucb:-1", "beta must be at least 0, got -1"),
    ("boltzmann:0", "temperature must be above 0, got 0"),
    ("cpw:0.1", r"eta must be in \[0.3, 1\], got 0.1"),
    ("wang:nan", "eta must be finite, got nan"),
    ("mean_deviation:inf", "penalty must be finite, got inf"),
    ("ucb:inf", "beta must be finite, got inf"),
    ("thompson:3", "takes no number"),
    ("tompson", "did you mean.*thompson"),
  ],
)
def test_bad_input_says_what_was_wanted(text, message):
  with pytest.raises(errors.UserError, match=message):
    score_names.parse(text)


def test_the_words_know_which_scores_draw():
  for name in score_words.NAMES:
    text = f"{name}:0.5" if name in score_words.WITH_NUMBER else name
    draws = score_names.parse(text).draws is not scores.Draws.NONE
    assert draws == (name in score_words.WITH_DRAWS), name


def test_a_policy_is_evaluated_without_draws():
  assert score_names.parse_steady("cvar:0.25") == scores.CVaR(0.25)
  with pytest.raises(errors.UserError, match="without draws, got 'thompson'"):
    score_names.parse_steady("thompson")
