"""Joint return distributions: vectors as particles."""

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)

# Two actions of one state; three particles in the plane.
_VALUES = [
  [
    [[0.0, 0.0], [2.0, 4.0], [4.0, 8.0]],
    [[1.0, 5.0], [2.0, 4.0], [3.0, 3.0]],
  ]
]
_LOG_WEIGHTS = np.log([[[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]])


def _joint(weighted=True):
  log_weights = tf.constant(_LOG_WEIGHTS, tf.float32) if weighted else None
  return JointReturnDistribution(tf.constant(_VALUES), log_weights)


def test_moments():
  np.testing.assert_allclose(
    _joint().mean(), [[[2.5, 5.0], [1.75, 4.25]]], rtol=1e-6
  )
  np.testing.assert_allclose(
    _joint(False).mean(), [[[2.0, 4.0], [2.0, 4.0]]], rtol=1e-6
  )
  # Variances of action 0: E[g^2] - 2.5^2 = (4 + 2 * 16) / 4 - 6.25 = 2.75.
  deviation = _joint().deviation()[0, 0]
  np.testing.assert_allclose(deviation, [2.75**0.5, 2 * 2.75**0.5], rtol=1e-6)
  correlation = _joint().correlation()[0]
  np.testing.assert_allclose(correlation[0], [[1, 1], [1, 1]], rtol=1e-6)
  np.testing.assert_allclose(correlation[1], [[1, -1], [-1, 1]], rtol=1e-6)


def test_correlation_with_a_return_that_does_not_vary_is_0():
  still = JointReturnDistribution(tf.constant([[1.0, 3.0], [2.0, 3.0]]))
  np.testing.assert_allclose(still.correlation(), [[1, 0], [0, 0]])


def test_a_utility_makes_numbers_of_vectors():
  worst = _joint().utility(lambda g: tf.reduce_min(g, axis=-1))
  assert isinstance(worst, ReturnDistribution)
  assert not isinstance(worst, JointReturnDistribution)
  np.testing.assert_allclose(worst.values, [[[0, 2, 4], [1, 2, 3]]])
  # 0.25 * 0 + 0.25 * 2 + 0.5 * 4 and 0.5 * 1 + 0.25 * 2 + 0.25 * 3.
  np.testing.assert_allclose(worst.mean(), [[2.5, 1.75]], rtol=1e-6)
  np.testing.assert_allclose(worst.cvar(0.5), [[1.0, 1.0]], rtol=1e-6)
  np.testing.assert_allclose(_joint().part(1).values, [[[0, 4, 8], [5, 4, 3]]])


def test_the_action_taken():
  taken = _joint().at(tf.constant([1]))
  assert isinstance(taken, JointReturnDistribution)
  np.testing.assert_allclose(taken.values, [_VALUES[0][1]])
  np.testing.assert_allclose(taken.weights(), [[0.5, 0.25, 0.25]], rtol=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
def test_nests_and_functions_keep_the_kind(weighted):
  joint = _joint(weighted)
  nest = joint.as_nest()
  assert len(tf.nest.flatten(nest)) == 1 + weighted
  passed = tf.function(lambda part: part)(nest)
  found = ReturnDistribution.of(passed)
  assert isinstance(found, JointReturnDistribution)
  assert (found.log_weights is not None) is weighted
  assert found.shape == [1, 2, 3] and found.dimensions == 2
  scaled = found.map_values(lambda z: 2 * z).stop_gradient()
  assert isinstance(scaled, JointReturnDistribution)
  np.testing.assert_allclose(scaled.values, 2 * np.array(_VALUES))


@pytest.mark.parametrize(
  "ask",
  [
    lambda joint: joint.cvar(0.5),
    lambda joint: joint.distorted(lambda c: c),
    lambda joint: joint.particle_at(tf.constant([[0.5, 0.5]])),
  ],
)
def test_what_needs_numbers_asks_for_a_utility(ask):
  with pytest.raises(errors.UserError, match="utility"):
    ask(_joint())
