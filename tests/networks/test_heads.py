"""Heads, dueling and noise."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks import ReturnNetwork, heads, implicit_heads
from tf_mmdrl.networks.noisy import NoisyDense

_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
_OBSERVATION = tf.TensorSpec([4], tf.float32)
_HEADS = {
  "particles": heads.particles(5),
  "weighted": heads.weighted_particles(5),
  "categorical": heads.categorical(5, -2.0, 2.0),
  "implicit": implicit_heads.implicit(5),
  "implicit_normal": implicit_heads.implicit(5, base="normal"),
  "fractions": implicit_heads.fractions(5),
}


def _network(head, **options):
  return ReturnNetwork(
    _OBSERVATION, _ACTION, head, **{"fc_layer_params": (8, 8), **options}
  )


def _call(net, observation, **options):
  return ReturnDistribution.of(net(observation, **options)[0])


@pytest.mark.parametrize("name", _HEADS)
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("dueling", [False, True])
def test_a_head_gives_distributions(name, dueling, noisy):
  net = _network(_HEADS[name], dueling=dueling, noisy_layers=noisy)
  observation = tf.random.normal([7, 4])
  made = _call(net, observation)
  assert made.values.shape == [7, 3, 5]
  np.testing.assert_allclose(
    np.sum(made.weights(), axis=-1), np.ones([7, 3]), rtol=1e-5
  )
  # Without a seed nothing is random; a seed decides all of it.
  again = _call(net, observation)
  np.testing.assert_array_equal(made.values, again.values)
  seeds = [tf.constant([1, 2]), tf.constant([1, 2]), tf.constant([1, 3])]
  means = [_call(net, observation, seed=seed).mean().numpy() for seed in seeds]
  np.testing.assert_array_equal(means[0], means[1])
  assert net.is_random == np.any(means[0] != means[2])
  assert net.is_random == (noisy or name.startswith("implicit"))
  copy = net.copy(name="other")
  copy.create_variables()
  assert [w.shape for w in copy.variables] == [w.shape for w in net.variables]
  outer = tf.reshape(observation[:6], [2, 3, 4])
  np.testing.assert_allclose(
    tf.reshape(_call(net, outer).values, [6, 3, 5]), made.values[:6], atol=1e-5
  )


def test_dueling_advantages_average_to_the_value():
  net = _network(heads.particles(5), dueling=True)
  values = _call(net, tf.random.normal([7, 4])).values
  stream = net.head._stream
  features = net.features(tf.random.normal([7, 4]))
  value = features
  for layer in stream._value:
    value = layer(value)
  np.testing.assert_allclose(
    tf.reduce_mean(stream(features), axis=1), value, atol=1e-5
  )
  assert values.shape == [7, 3, 5]


def test_implicit_heads_give_any_number_of_particles():
  net = _network(implicit_heads.implicit(5))
  observation = tf.random.normal([7, 4])
  for num in (1, 5, 64):
    made = _call(net, observation, num_particles=num)
    assert made.values.shape == [7, 3, num]
    np.testing.assert_allclose(
      made.levels[0, 0], (np.arange(num) + 0.5) / num, rtol=1e-6
    )


def test_stratified_draws_come_one_from_each_part():
  net = _network(implicit_heads.implicit(5, stratified=True))
  observation = tf.random.normal([7, 4])
  seeds = [tf.constant([1, k]) for k in range(2)]
  first, second = (
    _call(net, observation, seed=seed, num_particles=64).levels.numpy()
    for seed in seeds
  )
  np.testing.assert_array_equal(
    np.floor(64 * first), np.broadcast_to(np.arange(64), first.shape)
  )
  assert np.all((first > 0) & (first < 1)) and np.any(first != second)


@pytest.mark.parametrize("noisy", [False, True])
def test_a_seed_may_make_noise_alone(noisy):
  net = _network(implicit_heads.implicit(5), noisy_layers=noisy)
  assert net.is_noisy == noisy
  observation = tf.random.normal([7, 4])
  still = _call(net, observation)
  moved = _call(net, observation, seed=tf.constant([1, 2]), even_levels=True)
  np.testing.assert_array_equal(moved.levels, still.levels)
  assert np.any(moved.values != still.values) == noisy


def test_fractions_are_increasing_and_their_levels_lie_between():
  net = _network(implicit_heads.fractions(5))
  observation = 10 * tf.random.normal([7, 4])
  made = _call(net, observation)
  log_weights, edges = net.head.propose(net.features(observation))
  edges = edges.numpy()
  np.testing.assert_allclose(edges[:, 0], 0, atol=1e-6)
  np.testing.assert_allclose(edges[:, -1], 1, rtol=1e-5)
  assert np.all(np.diff(edges) > 0)
  np.testing.assert_allclose(
    made.levels[:, 0], (edges[:, 1:] + edges[:, :-1]) / 2, rtol=1e-5
  )
  np.testing.assert_allclose(made.log_weights[:, 1], log_weights, rtol=1e-5)


def test_noise_has_the_moments_of_factorised_gaussians():
  """Weights are mean + deviation x f(e_i) f(e_j); E f(e)^2 = E|e|."""
  layer = NoisyDense(3)
  inputs = tf.random.normal([1, 50])
  mean = layer(inputs).numpy()
  draw = tf.function(lambda seed: layer(inputs, seed=seed))
  draws = np.stack([draw(tf.constant([7, k])).numpy() for k in range(3000)])
  error = draws.mean(0) - mean
  spread = draws.std(0)
  assert np.all(np.abs(error) < 4 * spread / np.sqrt(3000))
  sigma, size = 0.5 / np.sqrt(50), np.sqrt(2 / np.pi)
  variance = sigma**2 * size * (np.sum(np.square(inputs)) * size + 1)
  np.testing.assert_allclose(spread**2, np.full([1, 3], variance), rtol=0.15)


def test_outputs_that_share_noise_move_together():
  layer = NoisyDense(6, share=3)
  inputs = tf.random.normal([4, 50])
  mean = layer(inputs).numpy()
  moved = layer(inputs, seed=tf.constant([7, 1])).numpy() - mean
  # The deviations are equal at first, so only the noise tells outputs apart.
  np.testing.assert_allclose(moved[:, 1:3], moved[:, :2], atol=1e-5)
  np.testing.assert_allclose(moved[:, 4:], moved[:, 3:5], atol=1e-5)
  assert np.abs(moved[:, 0] - moved[:, 3]).min() > 1e-3


def test_the_mean_of_noisy_particles_is_as_noisy_as_each():
  net = _network(heads.particles(200), noisy_layers=True)
  observation = tf.random.normal([1, 4])
  values = np.stack(
    [
      _call(net, observation, seed=tf.constant([7, k])).values[0, 0].numpy()
      for k in range(200)
    ]
  )
  assert values.mean(axis=1).std() > 0.5 * values.std(axis=0).mean()


def test_noise_is_in_the_head_alone():
  net = _network(heads.particles(5), dueling=True, noisy_layers=True)
  net.create_variables()
  noisy = [m for m in net.submodules if isinstance(m, NoisyDense)]
  assert len(noisy) == 4  # value and advantage, a hidden and a last layer each
  assert noisy == [m for m in net.head.submodules if isinstance(m, NoisyDense)]


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: heads.particles(0), "num_particles must be at least 1, got 0"),
    (lambda: heads.weighted_particles(-1), "at least 1, got -1"),
    (lambda: heads.categorical(1), "num_atoms must be at least 2, got 1"),
    (lambda: heads.categorical(51, 1.0, 1.0), "v_min must be below v_max"),
    (lambda: heads.categorical(51, 2.0, -2.0), "got 2.0 and -2.0"),
    (lambda: implicit_heads.implicit(0), "at least 1, got 0"),
    (lambda: implicit_heads.implicit(base="norml"), "did you mean.*normal"),
    (lambda: implicit_heads.fractions(1), "num_fractions must be at least 2"),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
