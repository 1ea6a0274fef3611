"""The size of returns, from histograms of rewards."""

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops import return_size


def _measure(rewards, discounts, weights=None, jit=False):
  rewards = np.float32(rewards)
  weights = np.ones(len(rewards)) if weights is None else weights
  discounts = np.broadcast_to(np.float32(discounts), rewards.shape)

  @tf.function(jit_compile=jit, autograph=False)
  def measure(*parts):
    return return_size.return_size(return_size.statistics(*parts))

  return measure(rewards, discounts, np.float32(weights))


def _natural(size):
  return float(size.relative) * 2.0 ** int(size.exponent)


@pytest.mark.parametrize("jit", [False, True])
def test_statistics_count_signs_and_exponents(jit):
  rewards = np.float32([0.0, -0.0, 1.0, 1.9, -3.0, 2.0**-20, -1e30])
  weights = np.float32([1, 1, 2, 1, 1, 1, 3])
  function = tf.function(return_size.statistics, jit_compile=jit)
  got = function(rewards, np.linspace(0, 1, 7, dtype=np.float32), weights)
  wanted = np.zeros(514)
  for reward, weight in zip(rewards, weights / 10):
    _, exponent = np.frexp(reward)  # in [1/2, 1)
    place = 126 + exponent if reward else 0
    wanted[place + 256 * np.signbit(reward)] += weight
  discounts = np.linspace(0, 1, 7)
  wanted[512] = discounts @ weights / 10
  wanted[513] = discounts**2 @ weights / 10
  np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_constant_rewards_give_the_geometric_sum():
  # 1.5 stands for every reward in [1, 2): returns are 1.5 / (1 - 0.9).
  size = _measure(np.ones(64), 0.9)
  np.testing.assert_allclose(_natural(size), np.hypot(15, 1.5), rtol=1e-5)


def test_independent_steps_have_the_second_moment():
  """Against simulated returns of steps drawn by themselves."""
  rng = np.random.default_rng(0)
  rewards = 1.5 * rng.choice([-1, 0, 0, 1, 1, 4], size=100_000)
  discounts = np.where(rng.random(100_000) < 0.05, 0.0, 0.95)
  returns, total = [], 0.0
  for reward, discount in zip(rewards, discounts):
    total = reward + discount * total
    returns.append(total)
  wanted = np.mean(np.square(returns)) + np.mean(rewards[rewards != 0] ** 2)
  size = _measure(rewards, discounts)
  np.testing.assert_allclose(_natural(size), np.sqrt(wanted), rtol=0.03)


@pytest.mark.parametrize("k", [-60, -12, -3, 5, 12, 60])
@pytest.mark.parametrize("jit", [False, True])
def test_powers_of_two_shift_it_and_change_no_bit(k, jit):
  rng = np.random.default_rng(1)
  rewards = np.float32(rng.normal(size=64) * (rng.random(64) < 0.3))
  size = _measure(rewards, 0.97, jit=jit)
  other = _measure(rewards * 2.0**k, 0.97, jit=jit)
  assert other.relative == size.relative
  assert other.exponent == size.exponent + k


@pytest.mark.parametrize("one_in", [32, 250, 10_000])  # 32: a first batch
def test_outliers_do_not_count_by_their_size(one_in):
  rewards = np.ones(10_000)
  without = _natural(_measure(rewards, 0.99))
  rewards[::one_in] = 1e9
  np.testing.assert_allclose(
    _natural(_measure(rewards, 0.99)), without, rtol=1e-2
  )


def test_a_billion_that_is_common_counts():
  rewards = np.ones(100)
  rewards[:20] = 1e9
  assert _natural(_measure(rewards, 0.0)) > 1e8


def test_rewards_that_are_not_rare_count_by_their_size():
  rewards = np.ones(10_000)
  rewards[:50] = 100.0  # the end of a game, say
  assert _natural(_measure(rewards, 0.0)) > 6


def test_sparse_rewards_count_by_their_own_size():
  rewards = np.zeros(10_000)
  rewards[3] = 1.0
  size = _natural(_measure(rewards, 0.99))
  assert 1 <= size <= 2


def test_zeros_have_no_size():
  assert not _measure(np.zeros(8), 0.99).known
  assert _measure([0.0, 1e-30], 0.99).known


@pytest.mark.parametrize("discount", [1.0, 0.0])
def test_the_ends_of_discounting_stay_finite(discount):
  assert np.isfinite(_measure(np.ones(8), discount).relative)


def test_examples_without_weight_do_not_count():
  weights = np.float32([1, 1, 0])
  with_outlier = _measure([1.0, 1.0, 1e6], 0.5, weights)
  assert with_outlier.relative == _measure([1.0, 1.0], 0.5).relative


@pytest.mark.parametrize("exponent", [-126, -1, 0, 7, 127])
def test_powers_of_two_are_exact(exponent):
  power = return_size.power_of_two(tf.constant(exponent))
  assert float(power) == 2.0**exponent
  assert int(return_size.exponent_of(power)) == exponent
  assert int(return_size.exponent_of(1.99 * power)) == exponent
