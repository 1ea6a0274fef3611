import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bellman


def _n_step(rewards, discounts, is_last, gamma=0.5):
  return bellman.n_step(
    tf.constant([rewards], tf.float32),
    tf.constant([discounts], tf.float32),
    tf.constant([is_last]),
    gamma=gamma,
  )


@pytest.mark.parametrize(
  "discounts, is_last, reward, discount, horizon",
  [
    # 8 + 0.5 * 4 + 0.25 * 2, then 0.125.
    ([1, 1, 1], [False, False, False], 10.5, 0.125, 3),
    # Terminates on the first step.
    ([0, 1, 1], [False, True, False], 8.0, 0.0, 1),
    # Cut off on the second: s_2 is last, 8 + 0.5 * 4, then 0.25 from s_2.
    ([1, 1, 1], [False, False, True], 10.0, 0.25, 2),
    # Discount 0 without an end (a lost life): later rewards do not count.
    ([0, 1, 1], [False, False, False], 8.0, 0.0, 3),
    # An environment's own discount multiplies too: 8 + 0.4 * 4 + 0.2 * 2.
    ([0.8, 1, 1], [False, False, False], 10.0, 0.1, 3),
  ],
)
def test_n_step_by_hand(discounts, is_last, reward, discount, horizon):
  result = _n_step([8, 4, 2], discounts, is_last)
  np.testing.assert_allclose(result.reward, [reward], rtol=1e-6)
  np.testing.assert_allclose(result.discount, [discount], rtol=1e-6)
  np.testing.assert_array_equal(result.horizon, [horizon])


def test_backup_shifts_and_scales_the_particles_only():
  following = ReturnDistribution(
    tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[-1.0, -2.0]] * 2)
  )
  with tf.GradientTape() as tape:
    tape.watch(following.values)
    target = bellman.backup(
      tf.constant([10.0, 20.0]), tf.constant([0.5, 0.0]), following
    )
  np.testing.assert_allclose(target.values, [[10.5, 11.0], [20.0, 20.0]])
  np.testing.assert_allclose(target.log_weights, following.log_weights)
  assert tape.gradient(target.values, following.values) is None
