import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.tabular import chain, process


def test_moments_of_a_coin_by_hand():
  # Z = 1 or 3 with probability 1/2 each, then the end: E Z = 2, E Z^2 = 5.
  coin = process.RewardProcess(
    probabilities=np.array([[0.5, 0.5]]),
    rewards=np.array([[1.0, 3.0]]),
    successors=np.zeros([1, 2], int),
    discounts=np.zeros([1, 2]),
  )
  raw = process.raw_moments(coin, 4)
  np.testing.assert_allclose(raw[:, 0], [1, 2, 5, 14, 41])
  np.testing.assert_allclose(
    process.central_from_raw(raw)[:, 0], [2, 1, 0, 1], atol=1e-12
  )


def test_moments_of_chain_two_by_hand():
  # Z = 1 w.p. 0.9, else -1 + 0.9 Z': m = 0.9 - 0.1 + 0.09 m, so m = 0.8 / 0.91,
  # and E Z^2 = 0.9 + 0.1 (1 - 1.8 m + 0.81 E Z^2).
  mean = 0.8 / 0.91
  second = (1 - 0.18 * mean) / (1 - 0.081)
  got = chain.Chain(2).exact_moments(2)
  np.testing.assert_allclose(got, [mean, second - mean**2], rtol=1e-12)


def test_absorbing_state_is_a_geometric_series():
  forever = process.RewardProcess(
    probabilities=np.ones([1, 1]),
    rewards=np.ones([1, 1]),
    successors=np.zeros([1, 1], int),
    discounts=np.full([1, 1], 0.9),
  )
  np.testing.assert_allclose(
    process.raw_moments(forever, 3)[:, 0], [1, 10, 100, 1000]
  )


def test_particle_moments_are_numpys():
  values = np.random.default_rng(0).normal(size=[3, 50])
  got = process.central_moments(values, np.full(50, 0.02), 3)
  np.testing.assert_allclose(got[:, 0], values.mean(-1))
  np.testing.assert_allclose(got[:, 1], values.var(-1))
  weighted = process.central_moments(
    np.array([0.0, 1.0]), np.array([0.75, 0.25]), 3
  )
  np.testing.assert_allclose(weighted, [0.25, 0.1875, 0.09375])


@pytest.mark.parametrize(
  "change, message",
  [
    ({"probabilities": np.full([1, 2], 0.4)}, "sum to 1"),
    ({"rewards": np.zeros([2, 2])}, "share one shape"),
    ({"discounts": np.full([1, 2], 1.5)}, r"lie in \[0, 1\]"),
  ],
)
def test_bad_processes(change, message):
  parts = {
    "probabilities": np.full([1, 2], 0.5),
    "rewards": np.zeros([1, 2]),
    "successors": np.zeros([1, 2], int),
    "discounts": np.zeros([1, 2]),
  }
  with pytest.raises(errors.UserError, match=message):
    process.RewardProcess(**{**parts, **change})
