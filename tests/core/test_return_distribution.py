import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tf_mmdrl.core import ReturnDistribution, UserError

_VALUES = tf.reshape(tf.range(12.0), [2, 3, 2])


def test_mean_is_uniform_or_weighted():
  np.testing.assert_allclose(
    ReturnDistribution(_VALUES).mean(), [[0.5, 2.5, 4.5], [6.5, 8.5, 10.5]]
  )
  weights = tf.math.log(tf.constant([0.25, 0.75])) + tf.zeros_like(_VALUES)
  np.testing.assert_allclose(
    ReturnDistribution(_VALUES, weights).mean(),
    [[0.75, 2.75, 4.75], [6.75, 8.75, 10.75]],
    rtol=1e-6,
  )


def test_weights_are_probabilities():
  np.testing.assert_allclose(
    ReturnDistribution(_VALUES).weights(), np.full([2, 3, 2], 0.5)
  )
  weights = tf.constant([[0.0, 0.25, 0.75]])
  weighted = ReturnDistribution(tf.zeros([1, 3]), tf.math.log(weights))
  np.testing.assert_allclose(weighted.weights(), weights, rtol=1e-6)


def test_at_takes_each_examples_own_action():
  taken = ReturnDistribution(_VALUES, -_VALUES).at(tf.constant([2, 0]))
  np.testing.assert_allclose(taken.values, [[4.0, 5.0], [6.0, 7.0]])
  np.testing.assert_allclose(taken.log_weights, [[-4.0, -5.0], [-6.0, -7.0]])


def _cvar_by_integration(values, weights, level):
  """The average of the quantile function over (0, level], step by step."""
  total, left = 0.0, level
  for index in np.argsort(values, kind="stable"):
    taken = min(left, weights[index])
    total += taken * float(values[index])
    left -= taken
  return total / (level - left)


def _run(function, compiled):
  wrapped = tf.function(function, jit_compile=compiled == "xla")
  return function if compiled == "eager" else wrapped


@pytest.mark.parametrize("compiled", ["eager", "graph", "xla"])
def test_cvar_takes_part_of_the_particle_at_the_border(compiled):
  # Sorted: 0 (0.5), 1 (0.2), 4 (0.3). Of the lowest 0.6, 0.5 lies at 0 and 0.1
  # at 1: 0.1 / 0.6.
  distribution = ReturnDistribution(
    tf.constant([[4.0, 0.0, 1.0]]),
    tf.math.log(tf.constant([[0.3, 0.5, 0.2]])),
  )
  cvar = _run(distribution.cvar, compiled)
  np.testing.assert_allclose(cvar(0.6), [0.1 / 0.6], rtol=1e-6)
  np.testing.assert_allclose(cvar(0.5), [0.0], atol=1e-7)
  np.testing.assert_allclose(cvar(1.0), distribution.mean(), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_cvar_is_the_integral_of_the_quantile_function(weighted, data):
  shape = data.draw(hnp.array_shapes(min_dims=3, max_dims=3, max_side=6))
  numbers = st.floats(-10, 10, width=32)
  values = data.draw(hnp.arrays(np.float32, shape, elements=numbers))
  masses = data.draw(
    hnp.arrays(np.float32, shape, elements=st.floats(0.125, 1, width=32))
  )
  levels = data.draw(
    hnp.arrays(
      np.float32, [shape[0], 1], elements=st.floats(0.125, 1, width=32)
    )
  )
  masses = masses if weighted else np.ones_like(masses)
  weights = masses / masses.sum(axis=-1, keepdims=True, dtype=np.float64)
  distribution = ReturnDistribution(
    tf.constant(values),
    tf.constant(np.log(weights), tf.float32) if weighted else None,
  )
  found = distribution.cvar(tf.constant(levels))
  wanted = [
    [
      _cvar_by_integration(values[b, a], weights[b, a], float(levels[b, 0]))
      for a in range(shape[1])
    ]
    for b in range(shape[0])
  ]
  # The rounding of weights counts up to eightfold, at the level of 1 / 8.
  np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
  assert (np.asarray(found) <= distribution.mean().numpy() + 1e-4).all()


def test_cvar_passes_over_particles_without_weight():
  weights = tf.constant([[0.0, 0.5, 0.5]])
  values = tf.constant([[-9.0, 1.0, 2.0]])
  lowest = ReturnDistribution(values, tf.math.log(weights)).cvar(1e-6)
  np.testing.assert_allclose(lowest, [1.0])


@pytest.mark.parametrize("level", [0, -0.5, 1.5, float("nan")])
def test_a_level_outside_of_its_range_is_told(level):
  with pytest.raises(UserError, match=r"must lie in \(0, 1\], got"):
    ReturnDistribution(_VALUES).cvar(level)
