"""The MMD of vectors: all ways against a float64 loop."""

import functools

import numpy as np
import oracle
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernels, mmd, reach
from tf_mmdrl.ops.mmd import Method

_KERNELS = {
  "energy": kernels.smooth_energy(1.0),
  "published": kernels.geometric_mixture(),
  "mixture": kernels.gaussian_mixture(),
  "laplace": kernels.laplace(2.0),
  "sum": kernels.weighted_sum(
    [kernels.gaussian(2.0), kernels.unrectified(1.0)], [0.5, 2.0]
  ),
}

# Every kernel, those with a cusp at several orders.
_EVERY = {
  **_KERNELS,
  "absolute": kernels.unrectified(1.0),
  "rough": kernels.unrectified(0.5),
  "nearly smooth": kernels.unrectified(1.5),
  "square": kernels.unrectified(2.0),
  "multiquadric": kernels.multiquadric(1.0),
  "exp_prod": kernels.exp_prod(4.0),
}


def _samples(dimensions, num_x=12, num_y=9):
  rng = np.random.default_rng(dimensions)
  x = 3 * rng.normal(size=[2, num_x, dimensions])
  y = 2 * rng.normal(size=[2, num_y, dimensions]) + 0.5
  logits = rng.normal(size=[2, num_x]), rng.normal(size=[2, num_y])
  return [np.float32(part) for part in (x, y, *logits)]


def _compute(kernel, method=Method.AUTO, jit_compile=None):
  @tf.function(autograph=False, jit_compile=jit_compile)
  def compute(x, y, log_weights, y_log_weights):
    with tf.GradientTape() as tape:
      tape.watch([x, log_weights])
      value = mmd.mmd_squared(
        x,
        y,
        kernel=kernel,
        x_log_weights=log_weights,
        y_log_weights=y_log_weights,
        method=method,
      )
    return value, *tape.gradient(value, [x, log_weights])

  return lambda *args: [
    part.numpy() for part in compute(*map(tf.constant, args))
  ]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 8])
@pytest.mark.parametrize("name", _KERNELS)
def test_equals_the_loop_with_weights(name, dimensions):
  kernel = _KERNELS[name]
  x, y, a, b = _samples(dimensions)
  value, gradient, d_weights = _compute(kernel)(x, y, a, b)
  for row in range(2):
    shares = oracle.softmax(a[row]), oracle.softmax(b[row])
    wanted, slope = oracle.mmd_squared(kernel, x[row], y[row], *shares)
    assert value[row] == pytest.approx(wanted, rel=1e-5)
    scale = np.abs(slope).max()
    np.testing.assert_allclose(gradient[row], slope, rtol=0, atol=1e-4 * scale)
    # Along one log-weight, by differences of the loop.
    moved = np.float64(a[row]) + 1e-6 * np.eye(len(a[row]))[3]
    shares = oracle.softmax(moved), shares[1]
    moved_to, _ = oracle.mmd_squared(kernel, x[row], y[row], *shares)
    assert d_weights[row, 3] == pytest.approx(
      (moved_to - wanted) / 1e-6, rel=1e-3, abs=1e-4 * wanted
    )


def test_weights_by_xla():
  arguments = _samples(3)
  exact = _compute(_KERNELS["energy"], Method.PAIRWISE)(*arguments)
  compiled = _compute(_KERNELS["energy"], jit_compile=True)(*arguments)
  for found, wanted in zip(compiled, exact):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * scale)


# Divisors within the function, so that XLA may round particles in two ways.
_DIVISORS = {60: 1.0, 100: 1.7, 200: 1.7}


def _coinciding(num, dimensions):
  """x and y [1, num, D], some of them in one place, as float32."""
  rng = np.random.default_rng(num)
  x = np.float32(3 * rng.normal(size=[1, num, dimensions]) + 1)
  y = np.float32(2 * rng.normal(size=[1, num, dimensions]))
  x[:, 1], y[:, :9] = x[:, 0], x[:, :9]
  return x, y


@functools.cache
def _of_every_kernel(num, dimensions, jit_compile):
  """{name: (value, gradient)}; one function of all kernels compiles faster."""

  by = _DIVISORS[num]

  @tf.function(autograph=False, jit_compile=jit_compile)
  def compute(x, y):
    found = {}
    for name, kernel in _EVERY.items():
      with tf.GradientTape() as tape:
        tape.watch(x)
        value = mmd.mmd_squared(x / by, y / by, kernel=kernel)
      found[name] = value[0], tape.gradient(value, x)[0]
    return found

  return compute(*map(tf.constant, _coinciding(num, dimensions)))


@pytest.mark.parametrize(
  "num, dimensions, jit_compile",
  [
    (60, 2, None),
    (60, 3, True),
    (100, 8, True),  # halved once; 200 are halved twice
    pytest.param(200, 8, True, marks=pytest.mark.slow),
  ],
)
@pytest.mark.parametrize("name", _EVERY)
def test_every_kernel_compiled_or_not(name, num, dimensions, jit_compile):
  """With particles in one place, where the slope of a cusp has no bound."""
  value, gradient = _of_every_kernel(num, dimensions, jit_compile)[name]
  by = _DIVISORS[num]
  x, y = (np.float64(part[0]) / by for part in _coinciding(num, dimensions))
  wanted, slope = oracle.mmd_squared(_EVERY[name], x, y)
  assert float(value) == pytest.approx(wanted, rel=1e-5)
  slope /= by
  scale = np.abs(slope).max()
  np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-4 * scale)


def test_particles_far_apart_keep_their_digits():
  """Nearly all of what is summed is -k(0) there, and cancels."""
  x, y, *_ = _samples(8, 200, 200)
  found = mmd.mmd_squared(*map(tf.constant, (x, y)), kernel=_KERNELS["mixture"])
  for value, *sample in zip(found.numpy(), x, y):
    wanted, _ = oracle.mmd_squared(_KERNELS["mixture"], *sample)
    assert value == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ["laplace", "absolute", "rough"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_distance_of_rounding_is_none(name, dtype):
  place = dtype([[[1.0, -3.0], [1.0, -3.0], [2.0, 5.0]]])
  beside = place.copy()
  beside[0, 1, 0] = np.nextafter(dtype(1.0), dtype(2.0))
  y = tf.constant(place[:, 1:] + 1)
  found = []
  for x in (place, beside):
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
      value = mmd.mmd_squared(x, y, kernel=_EVERY[name])
    found.append(tape.gradient(value, x))
  np.testing.assert_allclose(*found, rtol=1e-5)


def test_particles_far_from_zero_keep_their_digits():
  x, y, a, b = _samples(2)
  shift = np.float32([1024.0, -2048.0])
  x, y = (x + shift) - shift, (y + shift) - shift  # as the sums round
  near = _compute(_KERNELS["energy"])(x, y, a, b)
  far = _compute(_KERNELS["energy"])(x + shift, y + shift, a, b)
  np.testing.assert_allclose(far[0], near[0], rtol=1e-5)
  scale = np.abs(near[1]).max()
  np.testing.assert_allclose(far[1], near[1], rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize("name", ["energy", "published"])
def test_one_dimension_is_the_line(name):
  """Through the vector code, and through the choice among ways."""
  x, y, a, b = _samples(1, 40, 30)
  line = _compute(_KERNELS[name])(x[..., 0], y[..., 0], a, b)
  for method in (Method.AUTO, Method.PAIRWISE):
    value, gradient, d_weights = _compute(_KERNELS[name], method)(x, y, a, b)
    np.testing.assert_allclose(value, line[0], rtol=1e-5)
    scale = np.abs(line[1]).max()
    np.testing.assert_allclose(gradient[..., 0], line[1], atol=1e-4 * scale)
    scale = np.abs(line[2]).max()
    np.testing.assert_allclose(d_weights, line[2], atol=1e-4 * scale)


def test_a_permutation_of_dimensions_permutes_the_gradient():
  x, y, a, b = _samples(3)
  order = [2, 0, 1]
  compute = _compute(_KERNELS["energy"])
  value, gradient, _ = compute(x, y, a, b)
  permuted = compute(x[..., order], y[..., order], a, b)
  np.testing.assert_allclose(permuted[0], value, rtol=1e-6)
  np.testing.assert_allclose(permuted[1], gradient[..., order], atol=1e-6)


def test_chunks_of_rows_change_nothing(monkeypatch):
  arguments = _samples(2)
  whole = _compute(_KERNELS["energy"])(*arguments)
  monkeypatch.setattr(mmd.pairwise, "_CHUNK", 50)  # two rows of 21 columns
  for found, wanted in zip(_compute(_KERNELS["energy"])(*arguments), whole):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def _hard_case(case, dimensions, num=16):
  """x, y and log-weights, [1, N, D] and [1, N], where digits are lost."""
  rng = np.random.default_rng(dimensions)
  x = 3 * rng.normal(size=[1, num, dimensions])
  y = 2 * rng.normal(size=x.shape) + 0.5
  a, b = np.zeros([2, 1, num])
  if case == "weights":
    a, b = 3 * rng.normal(size=[2, 1, num])
  elif case == "apart":
    x, y = 3 * x, 3 * y + 5
  elif case == "scales":
    sizes = 10.0 ** np.linspace(-1, 1, dimensions)
    x, y = sizes * x, sizes * y
  elif case == "far from zero":
    x, y = x + 1000, y + 1000
  else:
    y = x[:, rng.permutation(num)] + float(case) * rng.normal(size=x.shape)
  return [np.float32(part) for part in (x, y, a, b)]


@functools.cache
def _of_kernels_weighted(dimensions, jit_compile):
  """A function of hard cases, compiled once for all of them."""

  # XLA takes longest to compile; it has all kernels above.
  chosen = _KERNELS if jit_compile else _EVERY

  @tf.function(autograph=False, jit_compile=jit_compile)
  def compute(x, y, a, b):
    found = {}
    for name, kernel in chosen.items():
      with tf.GradientTape() as tape:
        tape.watch(x)
        value = mmd.mmd_squared(
          x, y, kernel=kernel, x_log_weights=a, y_log_weights=b
        )
      found[name] = value[0], tape.gradient(value, x)[0]
    return found

  return compute


@pytest.mark.parametrize(
  "dimensions, jit_compile", [(1, None), (2, None), (8, True)]
)
@pytest.mark.parametrize(
  "case",
  ["weights", "apart", "scales", "far from zero", "0.1", "0.01", "0.001"],
)
def test_digits_where_terms_cancel_or_fade(case, dimensions, jit_compile):
  """Near convergence (0.1 and less), and out of the Gaussians' reach."""
  arguments = _hard_case(case, dimensions)
  compute = _of_kernels_weighted(dimensions, jit_compile)
  found = compute(*map(tf.constant, arguments))
  x, y, a, b = (np.float64(part[0]) for part in arguments)
  shares = oracle.softmax(a), oracle.softmax(b)
  for name, (value, gradient) in found.items():
    if name == "exp_prod" and case in ("apart", "scales", "far from zero"):
      continue  # it overflows, as its documentation says
    wanted, slope = oracle.mmd_squared(_EVERY[name], x, y, *shares)
    assert float(value) == pytest.approx(wanted, rel=1e-5), name
    scale = np.abs(slope).max()
    np.testing.assert_allclose(
      gradient, slope, rtol=0, atol=1e-4 * scale, err_msg=name
    )


def test_halves_change_nothing(monkeypatch):
  """Of 32 particles, pairs between halves are computed once for both."""
  rng = np.random.default_rng(0)
  parts = (rng.normal(size=[2, 32, 3]) for _ in range(2))
  logits = (rng.normal(size=[2, 32]) for _ in range(2))
  arguments = [np.float32(part) for part in (*parts, *logits)]
  whole = _compute(_KERNELS["energy"])(*arguments)
  monkeypatch.setattr(mmd.pairwise, "_FEW", 8)
  halved = _compute(_KERNELS["energy"])(*arguments)
  for one, other in zip(halved, whole):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_equal_samples_have_no_distance():
  x, _, a, _ = _samples(2)
  value, gradient, _ = _compute(_KERNELS["energy"])(
    x, x[:, ::-1], a, a[:, ::-1]
  )
  assert (value >= 0).all() and (value < 1e-6).all()
  np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_signed_wants_the_line():
  x = tf.zeros([1, 4])
  with pytest.raises(errors.UserError, match="signed.*B, N"):
    mmd.mmd_squared(x, x, kernel=_KERNELS["energy"], method=Method.SIGNED)


def test_particles_out_of_reach_in_the_plane():
  x = tf.constant([[[0.0, 0.0], [3.0, 4.0], [9.0, 0.0]]])
  y = tf.constant([[[0.0, 1.0], [100.0, 0.0]]])
  weights = tf.constant([[0.5, 0.3, 0.2]])
  # Nearest distances: 1, sqrt(18), sqrt(82).
  for limit, share in ((0.9, 1.0), (1.0, 0.5), (4.3, 0.2), (9.1, 0.0)):
    found = reach.share_beyond(x, y, limit, x_weights=weights)
    assert float(found[0]) == pytest.approx(share)
  far = reach.share_beyond(x, y, 1.0, y_weights=tf.constant([[0.0, 1.0]]))
  assert far[0] == 1.0
