import math

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernels, mmd

# A kernel and its formula, typed out.
_CASES = {
  "gaussian": (
    kernels.gaussian(3.0),
    lambda x, y: math.exp(-((x - y) ** 2) / 3),
  ),
  "mixture": (
    kernels.gaussian_mixture(),
    lambda x, y: sum(math.exp(-((x - y) ** 2) / h) for h in range(1, 11)),
  ),
  "geometric": (
    kernels.geometric_mixture(),
    lambda x, y: sum(
      2 ** (n / 2) * math.exp(-((x - y) ** 2) / 2**n) for n in range(-8, 9)
    ),
  ),
  "coefficients": (
    kernels.GaussianMixture((1.0, 2.0), (0.5, 0.0)),
    lambda x, y: 0.5 * math.exp(-((x - y) ** 2)),
  ),
  "smooth_energy": (
    kernels.smooth_energy(3.0),
    lambda x, y: (
      -abs(x - y) * math.erf(abs(x - y) / math.sqrt(3))
      - math.sqrt(3 / math.pi) * math.exp(-((x - y) ** 2) / 3)
    ),
  ),
  "unrectified-0.5": (
    kernels.unrectified(0.5),
    lambda x, y: -(abs(x - y) ** 0.5),
  ),
  "unrectified-1": (kernels.unrectified(1.0), lambda x, y: -abs(x - y)),
  "unrectified-2": (kernels.unrectified(2.0), lambda x, y: -((x - y) ** 2)),
  "laplace": (kernels.laplace(2.0), lambda x, y: math.exp(-abs(x - y) / 2)),
  "multiquadric": (
    kernels.multiquadric(5.0),
    lambda x, y: -math.sqrt(1 + (x - y) ** 2 / 5),
  ),
  "exp_prod": (kernels.exp_prod(2.0), lambda x, y: math.exp(x * y / 4)),
  "sum": (
    kernels.weighted_sum(
      [kernels.unrectified(1.0), kernels.exp_prod(2.0)], [2.0, 0.5]
    ),
    lambda x, y: -2 * abs(x - y) + 0.5 * math.exp(x * y / 4),
  ),
}
_POINTS = [(0.3, -1.2), (2.0, 2.5), (-3.0, 1.0), (0.0, 0.7)]


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("x, y", _POINTS)
def test_value_is_the_formula(name, x, y):
  kernel, formula = _CASES[name]
  value = kernel(tf.constant(x, tf.float64), tf.constant(y, tf.float64))
  np.testing.assert_allclose(value, formula(x, y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("x, y", _POINTS)
def test_gradient_is_the_slope_of_the_formula(name, x, y):
  kernel, formula = _CASES[name]
  step = 1e-6
  slope = (formula(x + step, y) - formula(x - step, y)) / (2 * step)
  gradient = kernel.gradient(
    tf.constant(x, tf.float64), tf.constant(y, tf.float64)
  )
  np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", _CASES)
def test_coinciding_points_have_a_finite_gradient(name):
  kernel, _ = _CASES[name]
  zero = tf.zeros([3])
  assert np.isfinite(kernel.gradient(zero, zero)).all()
  if kernel.properties.shift_invariant:
    np.testing.assert_array_equal(kernel.gradient(zero, zero), np.zeros(3))


@pytest.mark.parametrize("name", _CASES)
def test_properties_are_true(name):
  kernel, _ = _CASES[name]
  x, y = tf.constant(0.4, tf.float64), tf.constant(-1.1, tf.float64)
  shifted = kernel(x + 1.7, y + 1.7)
  assert kernel.properties.shift_invariant == np.isclose(shifted, kernel(x, y))
  order = kernel.properties.scale_order
  if order is not None:
    np.testing.assert_allclose(
      kernel(-3 * x, -3 * y), 3**order * kernel(x, y), rtol=1e-12
    )


def test_properties_of_sums():
  total = kernels.weighted_sum(
    [kernels.unrectified(1.5), kernels.unrectified(0.5)]
  )
  assert total.properties == kernels.Properties(True, True, None, 0.5)
  assert not kernels.unrectified(2.0).properties.characteristic
  with_gaussian = kernels.weighted_sum(
    [kernels.unrectified(1.0), kernels.gaussian(1.0)]
  )
  assert with_gaussian.properties.contraction_order is None
  muted = kernels.weighted_sum(
    [kernels.unrectified(1.0), kernels.gaussian(1.0)], [1.0, 0.0]
  )
  assert muted.properties.contraction_order == 1.0


def test_geometric_mixture_pulls_as_it_says():
  bound = 2 * math.sqrt(math.pi) / math.log(2)
  zero = tf.constant(0.0, tf.float64)

  def pull(kernel, log2_distances):
    return np.abs(kernel.gradient(2.0 ** tf.constant(log2_distances), zero))

  far_and_near = np.linspace(-12, 12, 20001)
  largest = np.max(pull(kernels.geometric_mixture(), far_and_near))
  papers = np.max(pull(kernels.gaussian_mixture(), far_and_near))
  assert (largest, papers) == pytest.approx((5.07, 3.71), abs=5e-3)
  for low, high in ((-8, 8), (-4, 10), (-12, 12)):
    kernel = kernels.geometric_mixture(low, high)
    assert len(kernel.bandwidths) == high - low + 1
    assert np.max(pull(kernel, far_and_near)) < bound
    between = np.linspace(low / 2, high / 2 - 2, 501)
    assert np.min(pull(kernel, between)) > 0.75 * bound
  assert kernels.geometric_mixture(3, 3).bandwidths == (8.0,)


def test_one_bandwidth_for_each_example():
  bandwidths = tf.constant([[1.0], [4.0]])
  kernel = kernels.GaussianMixture(bandwidths)
  x, y = tf.constant([[1.0, 2.0], [1.0, 2.0]]), tf.zeros([2, 1])
  np.testing.assert_allclose(
    kernel(x, y), np.exp([[-1.0, -4.0], [-0.25, -1.0]]), atol=1e-6
  )


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: kernels.gaussian(-1.0), "positive.* -1.0 at index 0"),
    (lambda: kernels.gaussian_mixture([1, 2, 0]), "got 0.0 at index 2"),
    (lambda: kernels.gaussian_mixture([]), "at least one"),
    (lambda: kernels.gaussian(float("nan")), "positive and finite"),
    (lambda: kernels.geometric_mixture(2, 1), r"must go up, got 2\.\.1"),
    (lambda: kernels.laplace(0.0), "positive"),
    (lambda: kernels.multiquadric(-2.0), "positive"),
    (lambda: kernels.exp_prod(0.0), "sigma must be positive"),
    (lambda: kernels.unrectified(0.0), r"alpha must lie in \(0, 2\]"),
    (lambda: kernels.unrectified(2.1), r"alpha must lie in \(0, 2\]"),
    (
      lambda: kernels.weighted_sum([kernels.gaussian(1.0)], [-1.0]),
      "non-negative",
    ),
    (
      lambda: kernels.weighted_sum([kernels.gaussian(1.0)], [1.0, 2.0]),
      "one coefficient",
    ),
    (
      lambda: kernels.GaussianMixture((1.0, 2.0), (1.0,)),
      "one coefficient",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()


def test_the_multiquadrics_h_is_the_square_of_hardys_c():
  c, eps, distances = 1.7, 0.4, np.linspace(0, 9, 7)
  ours = kernels.multiquadric(c**2)(0.0, tf.constant(distances)).numpy()
  np.testing.assert_allclose(ours, -np.sqrt(c**2 + distances**2) / c)
  ours = kernels.multiquadric(eps**-2)(0.0, tf.constant(distances)).numpy()
  np.testing.assert_allclose(ours, -np.sqrt(1 + (eps * distances) ** 2))


@pytest.mark.parametrize(
  "kernel", [kernels.smooth_energy(2.0), kernels.multiquadric(2.0)], ids=repr
)
@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_kernels_with_a_tail_contract(kernel, gamma):
  """MMD^2 falls by gamma or more when returns are discounted."""
  assert kernel.properties.contraction_order == 1
  rng = np.random.default_rng(0)
  size = 10.0 ** rng.uniform(-2, 2, size=[500, 1])
  x, y = (size * rng.standard_t(3, size=[500, 6]) for _ in range(2))
  before = mmd.mmd_squared(tf.constant(x), tf.constant(y), kernel=kernel)
  after = mmd.mmd_squared(
    tf.constant(gamma * x + 1), tf.constant(gamma * y + 1), kernel=kernel
  )
  assert np.all(after <= gamma * before * (1 + 1e-6))
  # The Gaussian does not contract (Theorem 2.2): wide laws come apart.
  gaussian = kernels.gaussian(1.0)
  wide = [
    mmd.mmd_squared(c * tf.constant(x), c * tf.constant(y), kernel=gaussian)
    for c in (1.0, gamma)
  ]
  assert np.any(wide[1] > wide[0])


def test_smooth_energy_is_the_energy_distance_of_blurred_laws():
  """Monte Carlo: noise of variance h / 4 on both sides."""
  rng, h = np.random.default_rng(1), 3.0
  noise = np.sqrt(h / 2) * rng.normal(size=200_000)
  for d in (0.0, 0.4, 2.0, 9.0):
    wanted = -np.mean(np.abs(d + noise))
    got = kernels.smooth_energy(h)(tf.constant(d), tf.constant(0.0))
    np.testing.assert_allclose(got, wanted, atol=0.01)
