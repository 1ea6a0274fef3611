import math

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops import kernels
from tf_mmdrl.tabular import (
  theory_contraction,
  theory_convergence,
  theory_metric,
)


@pytest.mark.parametrize("order", range(6))
def test_matched_pairs_share_their_moments_and_no_more(order):
  (x, p), (y, q) = theory_metric.matched_pair(order)
  np.testing.assert_allclose([p.sum(), q.sum()], 1)
  gaps = [abs(p @ x**n - q @ y**n) for n in range(order + 2)]
  assert max(gaps[:-1]) < 1e-12 < gaps[-1]


def test_separation():
  result = theory_metric.separation()
  assert all(claim.holds for claim in result.claims)
  distances = result.curves["separation"]
  assert distances["unrectified:2"][1][0] > 1  # means differ: it sees that
  assert distances["unrectified:2"][1][1:].max() < 1e-7
  assert distances["gaussian:1"][1].min() > 1e-3


def test_expansion():
  result = theory_metric.expansion()
  assert all(claim.holds for claim in result.claims)


def test_first_term_of_the_expansion_by_hand():
  # n = 0: (exp(-1/2) - 1)^2 for a Dirac at 1 against one at 0, sigma 1.
  dirac = (np.array([1.0]), np.ones(1)), (np.array([0.0]), np.ones(1))
  first, second = theory_metric.moment_series(*dirac, 1.0, 2)
  np.testing.assert_allclose(first, (math.exp(-0.5) - 1) ** 2)
  np.testing.assert_allclose(second - first, math.exp(-1))


def test_contraction_in_a_thousand_mdps():
  result = theory_contraction.contraction(1000)
  assert len(result.claims) == 15
  for claim in result.claims:
    assert claim.holds and "0 above the bound" in claim.setting
    assert claim.measured > 0.9 * claim.bound  # the bound is nearly met


def test_a_gaussian_kernel_breaks_the_bound_on_random_mdps():
  # The measurement can fail: no order above 0 survives a narrow Gaussian.
  ratios = theory_contraction.contraction_ratios(
    kernels.gaussian(0.1), 0.9, 1000
  )
  assert ratios.max() > 1


def _direct_ratio(gamma, alpha, k):
  """Appendix A.3 written out with dictionaries of point masses."""
  rewards = [0, 0.25, 0.5, 0.75, 1.0]
  p, q = [0.4, 0.3, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4]
  # Bisection for epsilon; the sum of squares falls from 1 to 1/n at 1/n.
  low, high = 0.0, 0.2
  for _ in range(200):
    middle = (low + high) / 2
    if 4 * middle**2 + (1 - 4 * middle) ** 2 > gamma ** (2 * alpha):
      low = middle
    else:
      high = middle
  chances = [low] * 4 + [1 - 4 * low]

  def mmd(signed):
    return math.sqrt(sum(a * b * k(x, y) for x, a in signed for y, b in signed))

  before = [(r, a - b) for r, a, b in zip(rewards, p, q)]
  after = [
    (r + gamma * z, chance * w)
    for r, chance in zip(rewards, chances)
    for z, w in before
  ]
  return mmd(after) / mmd(before)


@pytest.mark.parametrize("gamma", [0.8, 0.9])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5, 1.0])
def test_counterexample_against_a_direct_computation(gamma, alpha):
  ratio = theory_contraction.expansion_ratio(
    kernels.gaussian(0.02), gamma, alpha
  )
  direct = _direct_ratio(
    gamma, alpha, lambda x, y: math.exp(-((x - y) ** 2) / 0.02)
  )
  np.testing.assert_allclose(ratio, direct, rtol=1e-9)
  assert ratio > gamma**alpha
  if alpha <= 0.1:
    assert ratio > 1
  ratio = theory_contraction.expansion_ratio(
    kernels.exp_prod(0.1), gamma, alpha
  )
  direct = _direct_ratio(gamma, alpha, lambda x, y: math.exp(x * y / 0.01))
  np.testing.assert_allclose(ratio, direct, rtol=1e-9)
  assert ratio > 1


def test_reward_probabilities_solve_their_equation():
  p = theory_contraction.reward_probabilities(0.8, 0.5)
  np.testing.assert_allclose([p.sum(), (p**2).sum()], [1, 0.8])
  assert (p > 0).all() and len(set(p[:4])) == 1


def test_the_proofs_first_step_is_no_equality():
  claims = theory_contraction.no_contraction().claims
  steps = [c for c in claims if c.claim.startswith("A.3")]
  assert [c.holds for c in steps] == [False, False, False, True]
  theorem = [c for c in claims if c.claim.startswith("Theorem")]
  assert len(theorem) == 16 and all(c.holds for c in theorem)


_EMBEDDINGS = {
  "gaussian": theory_convergence.gaussian_embedding(1.5),
  "energy": theory_convergence.energy_embedding(),
}


@pytest.mark.parametrize("name", _EMBEDDINGS)
def test_embeddings_are_integrals(name):
  embedding = _EMBEDDINGS[name]
  grid = tf.constant(np.linspace(-9, 9, 3001))
  density = np.exp(-(grid.numpy() ** 2) / 2) / math.sqrt(2 * math.pi)
  weights = density * (18 / 3000)
  x = tf.constant([-1.3, 0.0, 2.1], tf.float64)
  integral = embedding.kernel(x[:, None], grid).numpy() @ weights
  np.testing.assert_allclose(embedding.potential(x), integral, rtol=1e-5)
  energy = weights @ embedding.potential(grid).numpy()
  np.testing.assert_allclose(embedding.energy, energy, rtol=1e-8)


def test_iid_error_is_what_samples_have():
  embedding = _EMBEDDINGS["gaussian"]
  samples = np.random.default_rng(0).normal(size=[20_000, 6])
  squared = embedding.mmd_squared(tf.constant(samples)).numpy()
  np.testing.assert_allclose(
    math.sqrt(squared.mean()), embedding.iid_mmd(6), rtol=0.02
  )


def test_optimised_particles_cannot_be_improved():
  embedding = _EMBEDDINGS["gaussian"]
  best = theory_convergence.optimiser(embedding)(5)
  least = float(embedding.mmd_squared(tf.constant(best)))
  generator = np.random.default_rng(0)
  for scale in (1e-1, 1e-2, 1e-3):
    nearby = best + scale * generator.normal(size=[200, 5])
    assert embedding.mmd_squared(tf.constant(nearby)).numpy().min() > least


def test_herding_takes_the_best_next_point():
  embedding = _EMBEDDINGS["energy"]
  points = theory_convergence.herding(embedding, 4)
  grid = np.linspace(-5, 5, 401)
  for n in range(4):
    tried = np.concatenate([np.tile(points[:n], [401, 1]), grid[:, None]], -1)
    best = embedding.mmd_squared(tf.constant(tried)).numpy().min()
    chosen = float(embedding.mmd_squared(tf.constant(points[: n + 1])))
    assert chosen <= best + 1e-12


def test_slope_of_a_power():
  n = np.array([2, 4, 8])
  assert theory_convergence.slope(n, 3 * n**-0.5) == pytest.approx(-0.5)
