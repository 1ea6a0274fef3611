"""Every kernel and method against a float64 loop over pairs."""

import functools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernel_terms, kernels, mmd, spectra, spectral

Method, Estimator = mmd.Method, mmd.Estimator

_MIXTURE = kernels.gaussian_mixture()
_CASES = {
  "mixture-spectral": (_MIXTURE, Method.SPECTRAL),
  "mixture-pairwise": (_MIXTURE, Method.PAIRWISE),
  "narrow-spectral": (kernels.gaussian(0.3), Method.SPECTRAL),
  "wide-spectral": (kernels.gaussian(500.0), Method.SPECTRAL),
  "geometric": (kernels.geometric_mixture(), Method.AUTO),
  "tail-spectral": (kernels.smooth_energy(0.7), Method.SPECTRAL),
  "tail-pairwise": (kernels.smooth_energy(0.7), Method.PAIRWISE),
  "tailed-mixture": (
    kernels.weighted_sum([_MIXTURE, kernels.smooth_energy(2.0)], [1.0, 0.5]),
    Method.AUTO,
  ),
  "energy": (kernels.unrectified(1.0), Method.AUTO),
  "energy-sorted": (kernels.unrectified(1.0), Method.SORTED),
  "energy-pairwise": (kernels.unrectified(1.0), Method.PAIRWISE),
  "unrectified-0.5": (kernels.unrectified(0.5), Method.AUTO),
  "unrectified-1.5": (kernels.unrectified(1.5), Method.AUTO),
  "unrectified-2": (kernels.unrectified(2.0), Method.AUTO),
  "laplace": (kernels.laplace(2.0), Method.AUTO),
  "laplace-sorted": (kernels.laplace(2.0), Method.SORTED),
  "multiquadric": (kernels.multiquadric(4.0), Method.AUTO),
  "sum": (
    kernels.weighted_sum(
      [kernels.gaussian(2.0), kernels.unrectified(1.0)], [0.5, 2.0]
    ),
    Method.AUTO,
  ),
}
_MODES = {
  "eager": lambda f: f,
  "graph": tf.function,
  "xla": functools.partial(tf.function, jit_compile=True),
}
_SPREADS = (0.01, 1.0, 30.0, 200.0, 2000.0)
# How far y is from x, in units of the spread: far, near, nearly converged.
_GAPS = (1.0, 0.03, 0.001)


def _compiled(mode, kernel, method=Method.AUTO, **options):
  """`_value_and_gradient` in a mode, as an agent would compute it."""
  if mode == "xla":
    options["by_xla"] = True
  return _MODES[mode](_value_and_gradient(kernel, method, **options))


def _value_and_gradient(kernel, method=Method.AUTO, **options):
  def compute(x, y, x_log_weights=None, y_log_weights=None):
    with tf.GradientTape() as tape:
      tape.watch(x)
      value = mmd.mmd_squared(
        x,
        y,
        kernel=kernel,
        method=method,
        x_log_weights=x_log_weights,
        y_log_weights=y_log_weights,
        **options,
      )
    return value, tape.gradient(value, x)

  return compute


def _particles(seed, spread, gap, num_x, num_y):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=[2, num_x]) * spread / 4
  y = x[:, rng.integers(num_x, size=num_y)]
  y = y + gap * spread / 4 * rng.normal(size=y.shape)
  offset = rng.normal(size=[2, 1]) * spread
  return (x + offset).astype(np.float32), (y + offset).astype(np.float32)


def _assert_exact(value, gradient, wanted, wanted_gradient):
  """The bars: 1e-5 and 1e-4 above 1e-4, 1e-2 down to 1e-7."""
  if wanted < 1e-7:
    return False
  value_bar, gradient_bar = (1e-5, 1e-4) if wanted > 1e-4 else (1e-2, 1e-2)
  assert abs(value - wanted) <= value_bar * wanted
  # Where all particles are out of each other's reach the gradient vanishes;
  # float32 then leaves its rounding of the kernel's slope.
  noise = 2e-7 / len(gradient)
  scale = np.max(np.abs(wanted_gradient))
  np.testing.assert_allclose(
    gradient, wanted_gradient, rtol=0, atol=gradient_bar * scale + noise
  )
  return True


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize(
  "num_x, num_y, modes",
  [
    (40, 40, ["graph"]),
    (7, 25, ["eager", "graph", "xla"]),
    (1, 1, ["eager"]),
    # XLA compiles for seconds, and many small operations take long one by one.
    pytest.param(40, 40, ["eager", "xla"], marks=pytest.mark.slow),
    pytest.param(32, 32, ["eager", "graph", "xla"], marks=pytest.mark.slow),
    pytest.param(1, 1, ["graph", "xla"], marks=pytest.mark.slow),
  ],
)
def test_equals_the_loop(case, modes, num_x, num_y):
  kernel, method = _CASES[case]
  computing = [_compiled(mode, kernel, method) for mode in modes]
  checked = 0
  for spread in _SPREADS:
    for seed, gap in enumerate(_GAPS):
      x, y = _particles(seed, spread, gap, num_x, num_y)
      wanted = [oracle.mmd_squared(kernel, x[row], y[row]) for row in range(2)]
      for compute in computing:
        value, gradient = compute(tf.constant(x), tf.constant(y))
        for row in range(2):
          checked += _assert_exact(value[row], gradient[row], *wanted[row])
  assert checked >= 8 * len(modes)


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_exp_prod_equals_the_loop(mode, spread):
  kernel = kernels.exp_prod(spread)  # at the returns' own size
  compute = _compiled(mode, kernel)
  x, y = _particles(0, spread, 1.0, 10, 12)
  value, gradient = compute(tf.constant(x), tf.constant(y))
  for row in range(2):
    assert _assert_exact(
      value[row], gradient[row], *oracle.mmd_squared(kernel, x[row], y[row])
    )


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(
  "case",
  [
    "mixture-spectral",
    "mixture-pairwise",
    "energy",
    "energy-sorted",
    "laplace",
    "laplace-sorted",
  ],
)
def test_weights_with_zeros(case, mode):
  kernel, method = _CASES[case]
  compute = _compiled(mode, kernel, method)
  rng = np.random.default_rng(0)
  x, y = _particles(0, 5.0, 0.3, 20, 30)
  x_log = rng.normal(size=x.shape).astype(np.float32)
  y_log = rng.normal(size=y.shape).astype(np.float32)
  x_log[:, ::3] = -np.inf
  y_log[:, 0] = -np.inf
  value, gradient = compute(*map(tf.constant, (x, y, x_log, y_log)))
  for row in range(2):
    weights = oracle.softmax(x_log[row]), oracle.softmax(y_log[row])
    wanted = oracle.mmd_squared(kernel, x[row], y[row], *weights)
    assert _assert_exact(value[row], gradient[row], *wanted)
  assert not np.any(gradient[:, ::3])


def test_unrectified_weights_of_one_row_count_as_they_are():
  value = mmd.mmd_squared(
    tf.constant([[0.0, 1.0]]),
    tf.constant([[0.0, 1.0]]),
    kernel=kernels.unrectified(1.0),
    x_log_weights=tf.math.log([[0.9, 0.1]]),
    y_log_weights=tf.math.log([[0.1, 0.9]]),
  )
  np.testing.assert_allclose(value, [2 * 0.8**2], rtol=1e-6)


@pytest.mark.parametrize("estimator", Estimator)
@pytest.mark.parametrize(
  "kernel, method",
  [
    (_MIXTURE, Method.AUTO),
    (_MIXTURE, Method.PAIRWISE),
    (kernels.unrectified(1.0), Method.AUTO),
    (kernels.laplace(1.0), Method.AUTO),
    (kernels.laplace(1.0), Method.SORTED),
    (kernels.exp_prod(3.0), Method.AUTO),
  ],
)
def test_gradient_of_the_weights(kernel, method, estimator):
  if estimator is Estimator.UNBIASED:
    method = Method.AUTO
  x, y = _particles(0, 4.0, 0.5, 20, 20)
  log_weights = np.random.default_rng(1).normal(size=x.shape)
  variable = tf.Variable(log_weights)
  with tf.GradientTape() as tape:
    value = mmd.mmd_squared(
      tf.constant(x, tf.float64),
      y,
      kernel=kernel,
      x_log_weights=variable,
      estimator=estimator,
      method=method,
    )
  gradient = tape.gradient(value, variable).numpy()
  unbiased = estimator is Estimator.UNBIASED
  for index in (0, 7, 19):
    ends = []
    for step in (1e-5, -1e-5):
      moved = log_weights[0].copy()
      moved[index] += step
      ends.append(
        oracle.mmd_squared(
          kernel, x[0], y[0], oracle.softmax(moved), unbiased=unbiased
        )[0]
      )
    slope = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(gradient[0, index], slope, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(
  "kernel", [_MIXTURE, kernels.unrectified(1.0), kernels.exp_prod(2.0)]
)
@pytest.mark.parametrize("mode", _MODES)
def test_unbiased_equals_the_loop(kernel, mode):
  compute = _MODES[mode](
    _value_and_gradient(kernel, estimator=Estimator.UNBIASED)
  )
  x, y = _particles(0, 3.0, 1.0, 9, 14)
  value, gradient = compute(tf.constant(x), tf.constant(y))
  for row in range(2):
    wanted, slope = oracle.mmd_squared(kernel, x[row], y[row], unbiased=True)
    np.testing.assert_allclose(value[row], wanted, rtol=1e-5)
    np.testing.assert_allclose(
      gradient[row], slope, atol=1e-5 * np.max(np.abs(slope))
    )


@pytest.mark.parametrize(
  "kernel", [_MIXTURE, kernels.unrectified(1.0), kernels.exp_prod(2.0)]
)
def test_vector_valued_returns(kernel):
  rng = np.random.default_rng(0)
  x = rng.normal(size=[2, 6, 3]).astype(np.float32)
  y = rng.normal(size=[2, 8, 3]).astype(np.float32)
  value, gradient = _value_and_gradient(kernel)(tf.constant(x), y)
  for row in range(2):
    wanted = oracle.mmd_squared(kernel, x[row], y[row])
    assert _assert_exact(value[row], gradient[row], *wanted)


@pytest.mark.parametrize("case", _CASES)
def test_repeated_particles(case):
  kernel, method = _CASES[case]
  x = np.array([[1.0, 1.0, 1.0, -2.0, -2.0, 0.5] * 4], np.float32)
  y = np.array([[1.0, 0.5, 0.5, 3.0, -2.0, 3.0] * 4], np.float32)
  value, gradient = _value_and_gradient(kernel, method)(tf.constant(x), y)
  assert _assert_exact(
    value[0], gradient[0], *oracle.mmd_squared(kernel, x[0], y[0])
  )


@pytest.mark.parametrize("mode", _MODES)
def test_spectral_stays_right_beyond_any_range(mode):
  """Far outliers would need more frequencies than pairs: no wrong number."""
  compute = _compiled(mode, _MIXTURE, Method.SPECTRAL)
  for outlier in (10.0, 1e3, 1e5, 1e7):
    x, y = _particles(0, 4.0, 0.5, 20, 20)
    x[0, 3], y[0, 5] = outlier, -outlier
    value, gradient = compute(tf.constant(x), tf.constant(y))
    for row in range(2):
      wanted = oracle.mmd_squared(_MIXTURE, x[row], y[row])
      assert _assert_exact(value[row], gradient[row], *wanted)


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_geometric_mixture_of_many_particles(mode):
  """200 particles go the spectral way over short ranges, by pairs over long."""
  kernel = kernels.geometric_mixture()
  compute = _compiled(mode, kernel)
  ways = set()
  for spread in (1.0, 30.0, 2000.0):
    for seed, gap in enumerate((1.0, 0.01)):
      x, y = _particles(seed, spread, gap, 200, 200)
      joint = tf.constant(np.concatenate([x, y], axis=1))
      narrow = spectra.Gaussians(kernel.by_width(mmd._OCTAVE)[0], tf.float32)
      blocks = spectral.place(joint, narrow).grid.num_blocks
      ways.add(bool(blocks <= 400 / mmd._PARTICLES_PER_BLOCK))
      value, gradient = compute(tf.constant(x), tf.constant(y))
      for row in range(2):
        wanted = oracle.mmd_squared(kernel, x[row], y[row])
        assert _assert_exact(value[row], gradient[row], *wanted)
  assert ways == {True, False}


_MANY = {
  "unrectified-1.25": kernels.unrectified(1.25),
  "unrectified-1.5": kernels.unrectified(1.5),
  "multiquadric": kernels.multiquadric(4.0),
  "laplace": kernels.laplace(2.0),
  "energy": kernels.unrectified(1.0),
}


@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize("name", _MANY)
def test_many_particles_by_ways_of_their_own(mode, name):
  """Repeated ones among them; multiquadrics of long ranges go by pairs."""
  kernel = _MANY[name]
  assert mmd._ways(kernel, tf.zeros([2, 96]))[0] is not Method.PAIRWISE
  compute = _compiled(mode, kernel)
  checked = 0
  for spread in (0.5, 30.0, 200.0, 2000.0):
    for seed, gap in enumerate((1.0, 0.01)):
      x, y = _particles(seed, spread, gap, 96, 104)
      x[:, 1::5], y[:, ::7] = x[:, ::5][:, :19], x[:, :15]
      value, gradient = compute(tf.constant(x), tf.constant(y))
      for row in range(2):
        wanted = oracle.mmd_squared(kernel, x[row], y[row])
        checked += _assert_exact(value[row], gradient[row], *wanted)
  assert checked >= 12


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5])
def test_unrectified_is_exact_where_it_has_nearly_converged(alpha):
  """Far below the rounding of the kernel's own values in float32."""
  rng = np.random.default_rng(0)
  x = np.float32(rng.normal(300, 3, [2, 200]))
  y = np.float32(x + rng.normal(0, 0.01, x.shape))
  kernel = kernels.unrectified(alpha)
  value, gradient = _value_and_gradient(kernel, Method.SIGNED)(
    tf.constant(x), tf.constant(y)
  )
  for row in range(2):
    wanted = oracle.mmd_squared(kernel, x[row], y[row])
    assert 1e-7 < wanted[0] < 1e-5 * np.ptp(x[row]) ** alpha
    assert _assert_exact(value[row], gradient[row], *wanted)


@pytest.mark.parametrize("num_blocks", [1, 2, 5, 16])
def test_the_multiquadric_of_a_table(num_blocks):
  """All over the range that so many blocks are for."""
  spectrum = spectra.Multiquadric(kernels.multiquadric(0.25))
  longest = spectrum._period(num_blocks) / 2 - spectrum._EDGE
  span = 0.5 * longest * (1 - 1e-9)
  grid = spectrum.grid(tf.constant([[span / 2], [span]], tf.float64))
  assert grid.num_blocks == num_blocks
  row = np.float64(spectrum._table()[num_blocks - 1])
  assert np.all(row[: 64 * num_blocks] > 0) and not any(row[64 * num_blocks :])
  step = 2 * np.pi / float(grid.period[0, 0])
  distances = np.linspace(0, span, 300)
  angles = np.outer(distances, (np.arange(len(row)) + 0.5) * step)
  found = (np.cos(angles) - 1) @ row
  wanted = 1 - np.sqrt(1 + distances**2 / 0.25)
  np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-8)
  beyond = tf.constant([[1.001 * span]], tf.float64)
  more = spectrum.grid(beyond).num_blocks
  assert more == (num_blocks + 1 if num_blocks < 16 else np.inf)


def test_bandwidths_far_apart_have_frequencies_of_their_own():
  kernel = kernels.geometric_mixture()
  assert [term for _, term in kernel_terms.terms(kernel)] == [kernel]
  found = kernel_terms.terms(kernel, by_width=mmd._OCTAVE)
  groups = [term for _, term in found]
  assert [len(group.bandwidths) for group in groups] == [9, 8]
  together = kernels.merged(groups, [1.0, 1.0])
  assert sorted(together.bandwidths) == sorted(kernel.bandwidths)
  assert together(0.0, 0.7).numpy() == pytest.approx(kernel(0.0, 0.7).numpy())


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("short", [0.1, 8.6])
def test_spectral_reaches_its_cut_off(blocks, short):
  """In float64, where F frequencies are a little short of some blocks."""
  kernel, digits = kernels.gaussian(1.0), spectra._DIGITS[tf.float64]
  frequencies = spectra.BLOCK * blocks - short
  period = frequencies * 2 * np.pi / np.sqrt(4 * digits)
  span = period - np.sqrt(digits)
  x, y = np.random.default_rng(0).random([2, 1, 40]) * span
  x[0, 0], y[0, 0] = 0, span
  value, gradient = _compiled("graph", kernel, Method.SPECTRAL)(
    tf.constant(x), tf.constant(y)
  )
  wanted_value, wanted_gradient = oracle.mmd_squared(kernel, x[0], y[0])
  np.testing.assert_allclose(value[0], wanted_value, rtol=2e-14)
  np.testing.assert_allclose(
    gradient[0], wanted_gradient, rtol=0, atol=2e-14 * np.abs(gradient).max()
  )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("case", ["mixture-spectral", "mixture-pairwise"])
def test_what_is_not_finite_is_not_hidden(case, bad):
  kernel, method = _CASES[case]
  x, y = _particles(0, 4.0, 0.5, 20, 20)
  y[0, 3] = bad
  value, _ = _value_and_gradient(kernel, method)(tf.constant(x), y)
  assert not np.isfinite(value[0])
  assert np.isfinite(value[1])


def test_chunks_of_rows_change_nothing():
  x, y = _particles(0, 3.0, 0.5, 300, 400)  # two chunks of rows
  kernel = kernels.laplace(1.0)
  value, gradient = _value_and_gradient(kernel, Method.PAIRWISE)(
    tf.constant(x), y
  )
  d = np.float64(x[0])[:, None] - np.float64(np.concatenate([x, y], 1)[0])
  signs = np.repeat([1 / 300, -1 / 400], [300, 400])
  slope = 2 / 300 * (-np.sign(d) * np.exp(-np.abs(d))) @ signs
  np.testing.assert_allclose(
    gradient[0], slope, atol=1e-5 * np.max(np.abs(slope))
  )
  exact, _ = _value_and_gradient(kernel, Method.SORTED)(tf.constant(x), y)
  np.testing.assert_allclose(value, exact, rtol=1e-5)


def test_a_bandwidth_for_each_example():
  bandwidths = tf.constant([[0.5], [6.0]])
  x, y = _particles(0, 4.0, 0.5, 30, 30)
  for method in (Method.SPECTRAL, Method.PAIRWISE):
    value, gradient = _value_and_gradient(
      kernels.GaussianMixture(bandwidths), method
    )(tf.constant(x), y)
    for row, h in enumerate((0.5, 6.0)):
      wanted = oracle.mmd_squared(kernels.gaussian(h), x[row], y[row])
      assert _assert_exact(value[row], gradient[row], *wanted)


def test_no_gradient_flows_into_the_target():
  x, y = map(tf.constant, _particles(0, 4.0, 0.5, 30, 30))
  with tf.GradientTape() as tape:
    tape.watch(y)
    value = mmd.mmd_squared(x, y, kernel=_MIXTURE)
  assert tape.gradient(value, y) is None


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
  x, y = (tf.cast(p, dtype) for p in _particles(0, 4.0, 0.5, 30, 30))
  value = mmd.mmd_squared(x, y, kernel=_MIXTURE)
  assert value.dtype == tf.float32
  wide = mmd.mmd_squared(
    tf.cast(x, tf.float64), tf.cast(y, tf.float64), kernel=_MIXTURE
  )
  assert wide.dtype == tf.float64
  np.testing.assert_allclose(value, wide, rtol=1e-5)


@pytest.mark.parametrize(
  "kernel", [_MIXTURE, kernels.gaussian(0.3), kernels.smooth_energy(0.7)]
)
def test_float64_is_exact_to_float64(kernel):
  """Bandwidths that float32 rounds among them."""
  x, y = (np.float64(p) for p in _particles(0, 30.0, 0.5, 40, 40))
  value, gradient = _value_and_gradient(kernel, Method.SPECTRAL)(
    tf.constant(x), y
  )
  wanted, slope = oracle.mmd_squared(kernel, x[0], y[0])
  np.testing.assert_allclose(value[0], wanted, rtol=1e-11)
  np.testing.assert_allclose(gradient[0], slope, atol=1e-12)


# Laws, for whatever particles.

_FLOATS = st.floats(-50, 50, width=32, allow_subnormal=False)
_SETS = st.lists(_FLOATS, min_size=1, max_size=24)
_LAWFUL = [
  "mixture-spectral",
  "mixture-pairwise",
  "energy-sorted",
  "laplace",
  "laplace-sorted",
]


def _mmd(case, x, y):
  kernel, method = _CASES[case]
  value = mmd.mmd_squared(
    np.float32([x]), np.float32([y]), kernel=kernel, method=method
  )
  return float(value[0])


@pytest.mark.parametrize("case", _LAWFUL)
@hypothesis.given(x=_SETS, y=_SETS, shift=st.integers(-64, 64))
@hypothesis.settings(max_examples=25, deadline=None)
def test_laws(case, x, y, shift):
  value = _mmd(case, x, y)
  near = functools.partial(pytest.approx, rel=1e-3, abs=2e-6)
  assert value >= (0 if case != "mixture-pairwise" else -1e-9)
  assert _mmd(case, y, x) == near(value)
  assert _mmd(case, x[::-1], sorted(y)) == near(value)
  assert _mmd(case, x, x) == pytest.approx(0, abs=1e-6)
  # Shifted in float64 first: float32 would round the particles themselves.
  x, y = np.round(x, 2), np.round(y, 2)
  assert _mmd(case, x + shift, y + shift) == pytest.approx(
    _mmd(case, x, y), rel=1e-2, abs=1e-4
  )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0])
@hypothesis.given(x=_SETS, y=_SETS, scale=st.sampled_from([-4.0, 0.25, 8.0]))
@hypothesis.settings(max_examples=15, deadline=None)
def test_unrectified_scales_with_its_order(alpha, x, y, scale):
  x, y = np.float32([x]), np.float32([y])
  kernel = kernels.unrectified(alpha)
  value = mmd.mmd_squared(x, y, kernel=kernel)
  scaled = mmd.mmd_squared(scale * x, scale * y, kernel=kernel)
  np.testing.assert_allclose(
    scaled, abs(scale) ** alpha * value, rtol=1e-4, atol=1e-6
  )


@pytest.mark.parametrize(
  "arguments, message",
  [
    (dict(x=np.zeros([2, 3]), y=np.zeros([2, 3, 1])), r"\[B, N\] and \[B, M\]"),
    (dict(x=np.zeros([3]), y=np.zeros([3])), r"\[B, N\] and \[B, M\]"),
    (dict(x=np.zeros([2, 0]), y=np.zeros([2, 3])), "at least 1, got 0 in x"),
    (dict(x=np.zeros([2, 3]), y=np.zeros([4, 3])), r"\(2, 3\) and \(4, 3\)"),
    (
      dict(
        x=np.zeros([2, 1]), y=np.zeros([2, 3]), estimator=Estimator.UNBIASED
      ),
      "at least 2, got 1 in x",
    ),
    (
      dict(x=np.zeros([2, 3]), y=np.zeros([2, 3]), x_log_weights=np.zeros(3)),
      "one log-weight for each particle",
    ),
    (
      dict(x=np.zeros([2, 3]), y=np.zeros([2, 3]), method=Method.SORTED),
      "'sorted' serves .* order 1",
    ),
    (
      dict(
        x=np.zeros([2, 3]),
        y=np.zeros([2, 3]),
        kernel=kernels.laplace(1.0),
        method=Method.SPECTRAL,
      ),
      "'spectral' serves .* Gaussian .* got Laplace",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(arguments, message):
  with pytest.raises(errors.UserError, match=message):
    mmd.mmd_squared(**{"kernel": _MIXTURE, **arguments})
