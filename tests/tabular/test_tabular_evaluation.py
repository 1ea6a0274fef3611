import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops import categorical, kernel_names, kernels
from tf_mmdrl.tabular import chain, evaluation, tabular_updates

_GAUSSIANS = "gaussian_mixture:8,10,12"


def _pair(n=7, m=5, seed=0):
  generator = np.random.default_rng(seed)
  return (
    tf.constant(generator.normal(size=[3, n])),
    tf.constant(generator.normal(0.3, 1.2, size=[3, m])),
  )


@pytest.mark.parametrize(
  "name",
  [
    _GAUSSIANS,
    "unrectified:1",
    "unrectified:1.5",
    "laplace:1",
    "exp_prod:2",
    "multiquadric:1",
    "0.5*gaussian:1+unrectified:1",
  ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_mmd_gradient_is_the_automatic_one(name, compiled):
  kernel = kernel_names.parse(name)
  x, y = _pair()

  def loss(x):
    # MMD_b^2 as the paper writes it, the diagonal left out of the tape: a
    # kernel that is not smooth there has no derivative, and k(x, x) of the
    # others is put back.
    own = kernel(x[:, :, None], x[:, None, :])
    if kernel.properties.shift_invariant:
      off = 1 - tf.eye(x.shape[-1], dtype=x.dtype)
      safe = x[:, None, :] + tf.eye(x.shape[-1], dtype=x.dtype)
      own = off * kernel(x[:, :, None], safe)
    cross = kernel(x[:, :, None], y[:, None, :])
    return tf.reduce_mean(own, [1, 2]) - 2 * tf.reduce_mean(cross, [1, 2])

  with tf.GradientTape() as tape:
    tape.watch(x)
    total = tf.reduce_sum(loss(x))
  expected = tape.gradient(total, x)
  gradient = tf.function(
    lambda x, y: tabular_updates.mmd_gradient(x, y, kernel),
    jit_compile=compiled,
  )
  np.testing.assert_allclose(gradient(x, y), expected, rtol=1e-10, atol=1e-13)


def test_quantile_gradient_is_the_automatic_one():
  x, y = _pair()
  levels = (np.arange(7) + 0.5) / 7
  with tf.GradientTape() as tape:
    tape.watch(x)
    gap = y[:, None, :] - x[:, :, None]
    below = tf.cast(gap < 0, tf.float64)
    weight = tf.stop_gradient(levels[:, None] - below)
    total = tf.reduce_sum(tf.reduce_mean(gap * weight, -1))
  np.testing.assert_allclose(
    tabular_updates.quantile_gradient(x, y), tape.gradient(total, x), atol=1e-14
  )


def _brute_force_projection(values, probabilities, support):
  """Bellemare et al. (2017), Algorithm 1, one atom after the other."""
  result = np.zeros(len(support))
  gap = support[1] - support[0]
  for value, probability in zip(values, probabilities):
    position = (min(max(value, support[0]), support[-1]) - support[0]) / gap
    low, high = int(np.floor(position)), int(np.ceil(position))
    if low == high:
      result[low] += probability
    else:
      result[low] += probability * (high - position)
      result[high] += probability * (position - low)
  return result


def test_projection_is_the_brute_force_one():
  generator = np.random.default_rng(1)
  support = np.linspace(-2, 1, 7)
  values = np.concatenate(
    [generator.normal(0, 2, [4, 6]), np.tile(support[:2], [4, 1])], -1
  )
  probabilities = generator.dirichlet(np.ones(8), 4)
  got = categorical.project(values, probabilities, tf.constant(support)).numpy()
  for i in range(4):
    expected = _brute_force_projection(values[i], probabilities[i], support)
    np.testing.assert_allclose(got[i], expected, atol=1e-12)
  inside = np.clip(values, -2, 1)
  np.testing.assert_allclose(got @ support, (probabilities * inside).sum(-1))


def _slow_algorithm_2(table, learner, update):
  """One transition after the other, in float64, copying theta^- whole."""
  table = table.copy()
  for i in range(learner.row.size):
    if i == 0 or learner.period[i] != learner.period[i - 1]:
      frozen = table.copy()
    row, successor = learner.row[i], learner.successor[i]
    table[row] = update(
      tf.constant(table[[row]]),
      tf.constant(frozen[[successor]]),
      *(
        tf.constant([[each[i]]], tf.float64)
        for each in (learner.reward, learner.discount, learner.rate)
      ),
    )[0]
  return table


def _learners(lengths, particles=6, episodes=8, per_period=None):
  tables, learners, first = [], [], 0
  for length in lengths:
    generator = np.random.default_rng(length)
    tables.append(generator.normal(-1, 0.3, [length - 1, particles]))
    played = chain.episodes(chain.Chain(length), episodes, generator)
    learners.append(
      evaluation.Transitions(
        row=first + played.state,
        successor=first + played.successor,
        period=(
          played.episode // per_period
          if per_period
          else np.arange(played.state.size)
        ),
        reward=played.reward,
        discount=np.where(played.ends, 0, 0.9),
        rate=(1 + played.episode) ** -0.2,
      )
    )
    first += length - 1
  return np.concatenate(tables), learners


_UPDATES = {
  "mmd": tabular_updates.mmd_update(kernels.gaussian_mixture([8, 10, 12])),
  "energy": tabular_updates.mmd_update(kernels.unrectified(1.0)),
  "quantile": tabular_updates.quantile_update,
  "categorical": tabular_updates.categorical_update(np.linspace(-10, 1, 6)),
}


@pytest.mark.parametrize("per_period", [None, 1, 3])
@pytest.mark.parametrize("name", _UPDATES)
def test_all_learners_at_once_are_algorithm_2_one_by_one(name, per_period):
  update = _UPDATES[name]
  table, learners = _learners([2, 3, 5, 4, 9], per_period=per_period)
  if name == "categorical":
    table = np.abs(table) / np.abs(table).sum(-1, keepdims=True)
  expected = table
  for learner in learners:
    expected = _slow_algorithm_2(expected, learner, update)
  shares = []
  got = evaluation.evaluate(
    table,
    learners,
    update,
    slots=2,
    dtype=tf.float64,
    on_progress=shares.append,
  )
  np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)
  assert shares[-1] == 1.0


@pytest.mark.parametrize("name", ["mmd", "quantile"])
def test_a_learner_does_not_see_the_others(name):
  table, learners = _learners([4, 2, 3, 5, 6, 7, 8, 9])
  alone = evaluation.evaluate(table, learners[:1], _UPDATES[name])
  among = evaluation.evaluate(table, learners, _UPDATES[name])
  np.testing.assert_array_equal(alone[:3], among[:3])
