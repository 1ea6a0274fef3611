"""The maximum mean discrepancy between weighted particles.

`mmd_squared` chooses among exact ways:

  spectral  O(N)        Gaussian kernels and multiquadrics (see `spectral`)
  sorted    O(N log N)  Laplace kernels, and the unrectified kernel of order 1
                        (see `laplace` and `energy`)
  pairwise  O(N^2)      every kernel, estimator and dimension (see `pairwise`)
  signed    O(N^2)      unrectified kernels, several times as fast (see
                        `unrectified`)
"""

import enum
import math
from typing import Optional, Tuple

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import (
  energy,
  kernel_terms,
  kernels,
  laplace,
  pairwise,
  phases,
  spectra,
  spectral,
  turns,
  unrectified,
)
from tf_mmdrl.ops.discrepancy import Discrepancy


class Estimator(enum.Enum):
  """BIASED: the V-statistic of the paper. UNBIASED: the U-statistic."""

  BIASED = "biased"
  UNBIASED = "unbiased"


class Method(enum.Enum):
  """How to compute; AUTO takes the fastest one for the kernel and shapes."""

  AUTO = "auto"
  PAIRWISE = "pairwise"
  SPECTRAL = "spectral"
  SORTED = "sorted"
  SIGNED = "signed"


# Below this many particles in all, pairs are cheaper than frequencies.
_FEW_PARTICLES = 32
# Up to this many, pairs are cheaper than sorting, and than the frequencies of a
# multiquadric.
_FEW_TO_SORT = 128
# The same where XLA compiles, which is slow to sort; for the energy distance,
# whose pairs are only compared.
_FEW_TO_SORT_BY_XLA = 1024
# Bandwidths of one grid of frequencies lie within this factor of each other.
_OCTAVE = 256.0
# Below this many, the spectral way computes in float64, as pairs do.
_FEW_FOR_FLOAT32 = 64
# Orders of unrectified kernels whose slope is made of square roots. The nearer
# to 2, the smaller is the discrepancy beside its terms: 1.75 wants float64.
_OF_ROOTS = (1.25, 1.5)
# A block of frequencies costs about as much as this many particles' pairs.
_PARTICLES_PER_BLOCK = 8


def mmd_squared(
  x: tf.Tensor,
  y: tf.Tensor,
  *,
  kernel: kernels.Kernel,
  x_log_weights: Optional[tf.Tensor] = None,
  y_log_weights: Optional[tf.Tensor] = None,
  estimator: Estimator = Estimator.BIASED,
  method: Method = Method.AUTO,
  by_xla: bool = False,
) -> tf.Tensor:
  """Squared MMD between weighted particles.

  Differentiable once, in x and in x_log_weights.

  Args:
    x: [B, N] particles, or [B, N, D] of vector-valued returns.
    y: [B, M] or [B, M, D] particles; no gradient flows into them.
    kernel: the kernel k.
    x_log_weights: [B, N] log-weights of x, normalised here; uniform if None.
    y_log_weights: [B, M] log-weights of y; no gradient flows into them.
    estimator: biased (never negative) or unbiased.
    method: how to compute it.
    by_xla: whether XLA compiles this: the same numbers, computed as is several
      times faster there and slower elsewhere.

  Returns:
    [B] squared discrepancies, float32 (float64 for float64 particles).
  """
  x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
  dtype = tf.float64 if x.dtype == tf.float64 else tf.float32
  x, y = tf.cast(x, dtype), tf.stop_gradient(tf.cast(y, dtype))
  _check_particles(x, y, estimator)
  uniform = x_log_weights is None and y_log_weights is None
  if uniform:  # the same for all
    x_weights, y_weights = _uniform(x[:1]), _uniform(y[:1])
  else:
    x_weights = _weights(x, x_log_weights, "x_log_weights")
    y_weights = tf.stop_gradient(_weights(y, y_log_weights, "y_log_weights"))
  if method is Method.AUTO and x.shape.rank == 3 and x.shape[2] == 1:
    x, y = x[:, :, 0], y[:, :, 0]  # the line has faster ways
  total = None
  # MMD^2 is linear in the kernel, so each term may go its own way.
  is_line = x.shape.rank == 2 and x.shape[1] + y.shape[1] > _FEW_PARTICLES
  by_width = _OCTAVE if is_line and method is not Method.PAIRWISE else None
  for coefficient, term in kernel_terms.terms(kernel, by_width=by_width):
    way = _choose(term, x, y, estimator, method, by_xla, uniform)
    value = coefficient * _differentiable(
      way, x, y, x_weights, y_weights, x_log_weights is not None
    )
    total = value if total is None else total + value
  return total


def _differentiable(way, x, y, x_weights, y_weights, with_weights):
  """`way` as a function of x and its weights, with the gradient it returns."""

  @tf.custom_gradient
  def value_of(x, x_weights):
    result = way(x, y, x_weights, y_weights, with_weights)

    def gradient(upstream):
      d_particles = result.d_particles * tf.reshape(
        upstream, [-1] + [1] * (x.shape.rank - 1)
      )
      if not with_weights:
        return d_particles, None
      d_weights = result.d_weights * upstream[:, tf.newaxis]
      return d_particles, tf.cast(d_weights, x_weights.dtype)

    return result.value, gradient

  return value_of(x, x_weights)


def _choose(kernel, x, y, estimator, method, by_xla, uniform):
  """The function (x, y, x_weights, y_weights, with_weights) -> Discrepancy."""
  biased = estimator is Estimator.BIASED
  num_x, num_y = x.shape[1], y.shape[1]
  ways = _ways(kernel, x) if biased else ()
  if method is Method.AUTO:
    few = _FEW_TO_SORT_BY_XLA if by_xla else _FEW_TO_SORT
    is_absolute = kernel == kernels.Unrectified(1.0) and Method.SORTED in ways
    if is_absolute and num_x + num_y <= few:
      method = Method.SIGNED
    else:
      method = _fastest(kernel, x, num_x + num_y, ways)
  if method is Method.PAIRWISE:
    return lambda *args: _pairwise(kernel, estimator, *args)
  if method not in ways:
    raise errors.UserError(
      f"method {method.value!r} serves the biased estimator on"
      f" {_SERVED[method]}, got {kernel} with the {estimator.value} estimator"
      f" on {x.dtype.name} {x.shape}; use Method.AUTO"
    )
  if method is Method.SPECTRAL:
    sine = phases.series_sine if by_xla else phases.library_sine
    return lambda *args: _spectral(kernel, sine, *args)
  if method is Method.SIGNED:
    return lambda *args: unrectified.discrepancy(
      *args[:-1], alpha=kernel.alpha, with_weights=args[-1], uniform=uniform
    )
  if isinstance(kernel, kernels.Laplace):
    return lambda *args: laplace.discrepancy(*args[:-1], h=kernel.h)
  return lambda *args: energy.discrepancy(*args[:-1], with_weights=args[-1])


_SERVED = {
  Method.SPECTRAL: (
    "[B, N] particles with Gaussian kernels, and with multiquadrics in float32"
  ),
  Method.SORTED: (
    "[B, N] particles with Laplace kernels and the unrectified kernel of order"
    " 1"
  ),
  Method.SIGNED: (
    "[B, N] particles with unrectified kernels of order 1 and, in float32, 1.25"
    " and 1.5"
  ),
}


def _ways(kernel: kernels.Kernel, x: tf.Tensor) -> Tuple[Method, ...]:
  """The ways to compute the biased estimator, but pair by pair."""
  if x.shape.rank == 3:  # pair by pair only
    return ()
  if isinstance(kernel, kernels.GaussianMixture):
    return (Method.SPECTRAL,)
  if isinstance(kernel, kernels.Multiquadric) and x.dtype == tf.float32:
    return (Method.SPECTRAL,)
  if isinstance(kernel, kernels.Laplace):
    return (Method.SORTED,)
  if kernel == kernels.Unrectified(1.0):
    return Method.SORTED, Method.SIGNED
  if isinstance(kernel, kernels.Unrectified) and x.dtype == tf.float32:
    return (Method.SIGNED,) if kernel.alpha in _OF_ROOTS else ()
  return ()


def _fastest(kernel, x, count: int, ways: Tuple[Method, ...]) -> Method:
  """The fastest of these ways, or pair by pair, for this many particles."""
  if isinstance(kernel, kernels.GaussianMixture):
    few = _FEW_PARTICLES
  elif isinstance(kernel, kernels.Unrectified) and kernel.alpha != 1:
    few = _FEW_FOR_FLOAT32
  else:
    few = _FEW_TO_SORT
  return ways[0] if ways and count > few else Method.PAIRWISE


def _pairwise(kernel, estimator, x, y, x_weights, y_weights, with_weights):
  """`pairwise.discrepancy` for [B, N] or [B, N, D] particles."""
  del with_weights  # they cost nothing here
  line = x.shape.rank == 2
  if line:
    x, y = x[:, :, tf.newaxis], y[:, :, tf.newaxis]
  result = pairwise.discrepancy(
    x,
    y,
    x_weights,
    y_weights,
    kernel=kernel,
    unbiased=estimator is Estimator.UNBIASED,
  )
  if line:
    result = result._replace(d_particles=result.d_particles[:, :, 0])
  return result


def _spectral(
  kernel, sine, x, y, x_weights, y_weights, with_weights
) -> Discrepancy:
  """Frequencies, or pairs where the range asks for too many frequencies."""
  num_x, num_y = x.shape[1], y.shape[1]
  z = turns.joined(x, y)
  is_gaussian = isinstance(kernel, kernels.GaussianMixture)
  # Rounding errors average out over many particles; few are cheap in float64.
  if is_gaussian and num_x + num_y < _FEW_FOR_FLOAT32:
    z = tf.cast(z, tf.float64)
  # Scaled so that uniform weights are whole numbers and sum to 0 exactly.
  scale = math.lcm(num_x, num_y)
  signed = tf.cast(turns.joined(x_weights, -y_weights) * scale, z.dtype)
  spectrum = (
    spectra.Gaussians(kernel, z.dtype)
    if is_gaussian
    else spectra.Multiquadric(kernel)
  )
  places = spectral.place(z, spectrum)

  def by_frequencies():
    result = spectral.discrepancy(
      signed, spectrum, places, with_weights=with_weights, sine=sine
    )
    parts = (
      result.value / scale**2,
      turns.first(result.d_particles, num_x) / scale**2,
      turns.first(result.d_weights, num_x) / scale
      if with_weights
      else result.d_particles[:, :num_x],  # not read
    )
    return tuple(tf.cast(part, x.dtype) for part in parts)

  def by_pairs():
    return tuple(
      _pairwise(
        kernel, Estimator.BIASED, x, y, x_weights, y_weights, with_weights
      )
    )

  limit = max(4, math.ceil((num_x + num_y) / _PARTICLES_PER_BLOCK))
  parts = tf.cond(places.grid.num_blocks <= limit, by_frequencies, by_pairs)
  return Discrepancy(*parts)


def _weights(particles, log_weights, name) -> tf.Tensor:
  """[B, N] weights that sum to 1; in float64, or rounding would change it."""
  if log_weights is None:
    return _uniform(particles)
  log_weights = tf.convert_to_tensor(log_weights)
  if not log_weights.shape.is_compatible_with(particles.shape[:2]):
    raise errors.UserError(
      f"{name} must have one log-weight for each particle,"
      f" {particles.shape[:2]}, got {log_weights.shape}"
    )
  return tf.nn.softmax(tf.cast(log_weights, tf.float64), axis=1)


def _uniform(particles) -> tf.Tensor:
  """[B, N] equal weights."""
  count = particles.shape[1]
  return tf.fill(tf.shape(particles)[:2], tf.constant(1 / count, tf.float64))


def _check_particles(x, y, estimator) -> None:
  if (
    x.shape.rank not in (2, 3)
    or x.shape.rank != y.shape.rank
    or x.shape[2:] != y.shape[2:]
    or not x.shape[:1].is_compatible_with(y.shape[:1])
  ):
    raise errors.UserError(
      "x and y must be [B, N] and [B, M], or [B, N, D] and [B, M, D], got"
      f" {x.shape} and {y.shape}"
    )
  least = 2 if estimator is Estimator.UNBIASED else 1
  for name, particles in (("x", x), ("y", y)):
    count = particles.shape[1]
    if count is None or count < least:
      raise errors.UserError(
        f"the {estimator.value} estimator wants a known number of particles,"
        f" at least {least}, got {count} in {name}"
      )
