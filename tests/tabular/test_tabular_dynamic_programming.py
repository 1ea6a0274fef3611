import numpy as np
import pytest

from tf_mmdrl.ops import kernels
from tf_mmdrl.tabular import (
  chain,
  dynamic_programming,
  exact_discrepancy,
  process,
)


def test_operator_by_hand():
  # s_0: 0.9 to s_1 for free, 0.1 back to s_0 for -1; s_1: 1 and the end.
  p = np.array([[0.9, 0.1], [0.9, 0.1]])
  it = chain.Chain(3).process()
  np.testing.assert_allclose(it.probabilities, p)
  values, weights = dynamic_programming.bellman(
    it, (np.array([[2.0], [4.0]]), np.ones([2, 1]))
  )
  np.testing.assert_allclose(values, [[3.6, 0.8], [1.0, 0.8]])
  np.testing.assert_allclose(weights, p)


def test_operator_moves_exact_moments_to_themselves():
  it = chain.Chain(6).process()
  returns = dynamic_programming.fixed_point(it, atoms=4001)
  applied = dynamic_programming.bellman(it, returns)
  for particles in (returns, applied):
    moments = process.central_moments(*particles, 6)[0]
    # The mean is exact; a gap of g adds at most g^2 / 4 / (1 - gamma^2) to the
    # variance, here 1e-5.
    np.testing.assert_allclose(
      moments, chain.Chain(6).exact_moments(6), rtol=1e-4
    )


def test_return_bounds_of_the_chain():
  low, high = dynamic_programming.return_bounds(chain.Chain(4).process())
  np.testing.assert_allclose([low, high], [-10, 1])


@pytest.mark.parametrize(
  "kernel", [kernels.unrectified(1.0), kernels.gaussian(2.0)]
)
def test_discrepancy_is_the_double_sum(kernel):
  generator = np.random.default_rng(0)
  p = generator.normal(size=[2, 3]), generator.dirichlet(np.ones(3), 2)
  q = generator.normal(size=[2, 4]), generator.dirichlet(np.ones(4), 2)

  def expectation(a, b, i):
    return sum(
      wx * wy * float(kernel(x, y))
      for x, wx in zip(a[0][i], a[1][i])
      for y, wy in zip(b[0][i], b[1][i])
    )

  expected = [
    expectation(p, p, i) + expectation(q, q, i) - 2 * expectation(p, q, i)
    for i in range(2)
  ]
  np.testing.assert_allclose(
    exact_discrepancy.mmd_squared(p, q, kernel), expected, rtol=1e-6
  )
  np.testing.assert_allclose(
    dynamic_programming.mmd_infinity(p, q, kernel),
    np.sqrt(max(expected)),
    rtol=1e-6,
  )


def test_batches_of_processes():
  one, two = chain.Chain(4).process(), chain.Chain(4, 0.5).process()
  both = process.RewardProcess(
    *(
      np.stack([getattr(one, name), getattr(two, name)])
      for name in ("probabilities", "rewards", "successors", "discounts")
    )
  )
  generator = np.random.default_rng(0)
  returns = generator.normal(size=[2, 3, 5]), np.full([2, 3, 5], 0.2)
  got = dynamic_programming.bellman(both, returns)
  for i, it in enumerate((one, two)):
    expected = dynamic_programming.bellman(it, (returns[0][i], returns[1][i]))
    np.testing.assert_array_equal(got[0][i], expected[0])
    np.testing.assert_array_equal(got[1][i], expected[1])
