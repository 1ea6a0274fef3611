import numpy as np
import tensorflow as tf

from tf_mmdrl.core import ReturnDistribution

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


def test_at_takes_each_examples_own_action():
  taken = ReturnDistribution(_VALUES, -_VALUES).at(tf.constant([2, 0]))
  np.testing.assert_allclose(taken.values, [[4.0, 5.0], [6.0, 7.0]])
  np.testing.assert_allclose(taken.log_weights, [[-4.0, -5.0], [-6.0, -7.0]])
