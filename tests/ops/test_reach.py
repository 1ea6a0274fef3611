import functools
import math

import numpy as np
import oracle
import pytest
import tensorflow as tf

from tf_mmdrl import losses
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bandwidths, kernels, reach

_MODES = {
  "eager": lambda f: f,
  "graph": tf.function,
  "xla": functools.partial(tf.function, jit_compile=True),
}
_FADING = {
  "gaussian": kernels.gaussian(3.0),
  "mixture": kernels.gaussian_mixture(),
  "coefficients": kernels.GaussianMixture((1.0, 50.0), (1.0, 0.0)),
  # The wide one pulls with less than 1 % of the narrow one.
  "narrow-and-faint": kernels.GaussianMixture((1.0, 1e6)),
  # The pull fades between the two, and comes back.
  "two-peaks": kernels.GaussianMixture((0.01, 100.0)),
  "geometric": kernels.geometric_mixture(),
  "laplace": kernels.laplace(2.0),
  "sum": kernels.weighted_sum(
    [kernels.laplace(0.5), kernels.gaussian_mixture([4, 9])], [0.1, 2.0]
  ),
  # Tails that pull with less than 1 % of the Gaussian.
  "faint-smooth-tail": kernels.weighted_sum(
    [kernels.gaussian(1.0), kernels.smooth_energy(1.0)], [1.0, 1e-4]
  ),
  "faint-tails": kernels.weighted_sum(
    [kernels.gaussian(4.0), kernels.multiquadric(9.0), kernels.unrectified(1)],
    [1.0, 5e-3, 2e-3],
  ),
  "nested-sum": kernels.weighted_sum(
    [
      kernels.weighted_sum([kernels.laplace(0.1)], [0.01]),
      kernels.gaussian(4.0),
      kernels.unrectified(1.0),
    ],
    [0.5, 1.0, 0.0],
  ),
}


def _reach_of_the_formula(kernel):
  """The last of many even distances where the pull is 1 % of the largest."""
  step = 1e-4
  distances = np.arange(step / 2, 60.0, step)
  pull = np.abs(oracle.gradient(kernel, distances[:, None], np.zeros([1, 1])))
  return distances[np.flatnonzero(pull[:, 0] >= 0.01 * pull.max())[-1]], step


@pytest.mark.parametrize("name", _FADING)
def test_reach_is_where_the_pull_ends(name):
  wanted, step = _reach_of_the_formula(_FADING[name])
  # The formula's grid misses the largest pull at 0 by a share of its step.
  assert _FADING[name].reach == pytest.approx(wanted, abs=2 * step)


def test_reach_in_closed_form():
  for h in (0.25, 1.0, 7.0):
    assert kernels.laplace(h).reach == pytest.approx(
      h * math.log(100), rel=1e-9
    )
  # u exp(-u^2) is 1 % of its largest value, sqrt(1 / 2e), at u = 2.52551.
  for h in (1e-6, 1.0, 1e6):
    expected = 2.52551 * math.sqrt(h)
    assert kernels.gaussian(h).reach == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
  "kernel",
  [
    kernels.unrectified(0.5),
    kernels.unrectified(1.0),
    kernels.unrectified(2.0),
    kernels.multiquadric(3.0),
    kernels.exp_prod(2.0),
    kernels.GaussianMixture(tf.constant([[1.0], [4.0]])),
    kernels.smooth_energy(1.0),
    kernels.weighted_sum([kernels.gaussian(1.0), kernels.unrectified(1.0)]),
    # 1 % of the largest pull, 0.858, and as much that stays.
    kernels.weighted_sum(
      [kernels.gaussian(1.0), kernels.unrectified(1.0)], [1.0, 0.01]
    ),
  ],
)
def test_reach_without_end(kernel):
  assert kernel.reach == math.inf


def test_reach_leaves_a_kernel_as_it_was():
  used, unused = kernels.gaussian_mixture(), kernels.gaussian_mixture()
  assert used.reach == used.reach
  assert used == unused
  assert hash(used) == hash(unused)


def _share_by_loops(x, y, distance, x_weights, y_weights):
  """[B] shares, from the definition."""
  shares = []
  for row in range(len(x)):
    lost = 0.0
    for i, particle in enumerate(x[row]):
      near = [
        abs(particle - target) <= distance
        for target, weight in zip(y[row], y_weights[row])
        if weight > 0
      ]
      lost += 0.0 if any(near) else np.float64(x_weights[row, i])
    shares.append(lost / np.sum(x_weights[row], dtype=np.float64))
  return shares


def _example(seed, num_x, num_y):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=[3, num_x]).astype(np.float32) * 5
  y = rng.normal(size=[3, num_y]).astype(np.float32) * 2
  y[0] += 10  # mostly beyond
  x[1, ::2] = y[1, 0]  # coinciding particles
  return x, y, rng


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("num_x, num_y", [(1, 1), (7, 1), (1, 5), (40, 30)])
def test_share_equals_the_loop(mode, num_x, num_y):
  compute = _MODES[mode](reach.share_beyond)
  x, y, rng = _example(0, num_x, num_y)
  x_weights = rng.random(x.shape).astype(np.float32)
  y_weights = rng.random(y.shape).astype(np.float32)
  y_weights[:, 1::2] = 0
  ones = np.ones_like(x), np.ones_like(y)
  for distance in (0.0, 0.3, 2.0, 50.0, np.inf):
    limit = tf.constant(distance, tf.float32)
    share = compute(tf.constant(x), tf.constant(y), limit)
    wanted = _share_by_loops(x, y, np.float32(distance), *ones)
    np.testing.assert_allclose(share, wanted, rtol=1e-6)
    share = compute(
      tf.constant(x),
      tf.constant(y),
      limit,
      x_weights=tf.constant(x_weights),
      y_weights=tf.constant(y_weights),
    )
    wanted = _share_by_loops(x, y, np.float32(distance), x_weights, y_weights)
    np.testing.assert_allclose(share, wanted, rtol=1e-5, atol=1e-7)


def test_share_at_the_very_distance():
  x = tf.constant([[0.0, 3.0, 3.5, 10.0]])
  y = tf.constant([[6.0, 1.0]])
  # Distances to the nearest y: 1, 2, 2.5 and 4.
  for distance, share in ((0.5, 1.0), (2.0, 0.5), (2.5, 0.25), (4.0, 0.0)):
    np.testing.assert_array_equal(reach.share_beyond(x, y, distance), [share])


def test_share_has_no_gradient_and_takes_any_batch():
  compute = tf.function(
    lambda x, y: reach.share_beyond(x, y, 1.0),
    input_signature=[tf.TensorSpec([None, 4]), tf.TensorSpec([None, 2])],
  )
  x, y = tf.zeros([5, 4]), tf.ones([5, 2]) * 3
  with tf.GradientTape() as tape:
    tape.watch([x, y])
    share = compute(x, y)
  np.testing.assert_array_equal(share, np.ones(5))
  assert tape.gradient(share, [x, y]) == [None, None]


def test_shares_of_rows_count_by_their_error():
  """Few examples may be far away, and most of the error theirs."""
  loss = losses.MMDLoss(kernels.gaussian(1.0))  # reaches 2.5
  x = ReturnDistribution(tf.constant([[0.0, 1.0], [0.0, 1.0], [0.0, 4.0]]))
  y = ReturnDistribution(tf.constant([[0.5], [9.0], [1.0]]))
  step = tf.constant(0)
  for error, share in (
    ([0.0, 8.5, 1.0], (8.5 + 0.5) / 9.5),
    ([1.0, 1e38, 3e38], (1 + 1.5) / 4),
    ([0.0, 0.0, 0.0], 0.0),  # nothing to learn
  ):
    found = loss.share_beyond(x, y, tf.constant(error), step)
    np.testing.assert_allclose(found, share, rtol=1e-6)


def test_a_rule_says_its_reach_with_the_kernel_it_makes():
  annealed = losses.MMDLoss(bandwidths.annealed(16.0, 1.0, 10))
  x = ReturnDistribution(tf.zeros([1, 1]))
  y = ReturnDistribution(tf.constant([[6.0]]))
  assert annealed.has_reach
  for step, share in ((0, 0.0), (10, 1.0)):  # reaches 10.1, and 2.5 at last
    args = (x, y, tf.ones([1]), tf.constant(step))
    np.testing.assert_array_equal(annealed.share_beyond(*args), share)
  # The median of distances follows the particles, example by example.
  median = bandwidths.median()
  both = ReturnDistribution(tf.constant([[0.0, 1.0], [0.0, 50.0]]))
  wide = bandwidths.reach(median(both, both, tf.constant(0)))
  assert wide.shape == [2, 1] and float(wide[1] / wide[0]) > 10
  assert bandwidths.reach(kernels.unrectified(1.0)) == math.inf
