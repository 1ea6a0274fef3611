"""The maximum mean discrepancy between weighted particles.

`mmd_squared` chooses among three exact ways:

  spectral  O(N)        Gaussian kernels (see `spectral`)
  sorted    O(N log N)  the unrectified kernel of order 1 (see `energy`, which
                        counts pairs where there are few)
  pairwise  O(N^2)      every kernel, estimator and dimension (see `pairwise`)
"""

import enum
import math
from typing import List, Optional, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.ops import energy, kernels, pairwise, spectral
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


# Below this many particles in all, pairs are cheaper than frequencies.
_FEW_PARTICLES = 32
# Up to this many, the energy distance is cheaper by pairs than by sorting.
_FEW_TO_SORT = 128
# Below this many, the spectral way computes in float64.
_FEW_FOR_FLOAT32 = 64
# A block of frequencies costs about as much as this many particles' pairs.
_PARTICLES_PER_BLOCK = 8
# x and y take turns in groups of this size in the sums over particles, so that
# partial sums stay small in sequential and in vectorised summation alike.
_INTERLEAVE = 4


def mmd_squared(
  x: tf.Tensor,
  y: tf.Tensor,
  *,
  kernel: kernels.Kernel,
  x_log_weights: Optional[tf.Tensor] = None,
  y_log_weights: Optional[tf.Tensor] = None,
  estimator: Estimator = Estimator.BIASED,
  method: Method = Method.AUTO,
  cos_sin: spectral.CosSin = spectral.library_cos_sin,
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
    cos_sin: for the spectral way; `spectral.series_cos_sin` is several times
      faster where XLA compiles, and slower where it does not.

  Returns:
    [B] squared discrepancies, float32 (float64 for float64 particles).
  """
  x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
  dtype = tf.float64 if x.dtype == tf.float64 else tf.float32
  x, y = tf.cast(x, dtype), tf.stop_gradient(tf.cast(y, dtype))
  _check_particles(x, y, estimator)
  x_weights = _weights(x, x_log_weights, "x_log_weights")
  y_weights = tf.stop_gradient(_weights(y, y_log_weights, "y_log_weights"))
  total = None
  # MMD^2 is linear in the kernel, so each term may go its own way.
  for coefficient, term in _terms(kernel):
    way = _choose(term, x, y, estimator, method, cos_sin)
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


def _terms(kernel: kernels.Kernel) -> List[Tuple[float, kernels.Kernel]]:
  """The kernel as a sum of kernels that are not sums; one of all Gaussians."""
  leaves = _leaves(kernel)
  gaussian = [leaf for leaf in leaves if _is_gaussian(leaf[1])]
  if len(gaussian) > 1:
    coefficients, mixtures = zip(*gaussian)
    others = [leaf for leaf in leaves if not _is_gaussian(leaf[1])]
    return [(1.0, kernels.merged(mixtures, coefficients)), *others]
  return leaves


def _is_gaussian(kernel: kernels.Kernel) -> bool:
  return isinstance(kernel, kernels.GaussianMixture) and not tf.is_tensor(
    kernel.bandwidths
  )


def _leaves(kernel: kernels.Kernel) -> List[Tuple[float, kernels.Kernel]]:
  if not isinstance(kernel, kernels.Sum):
    return [(1.0, kernel)]
  return [
    (coefficient * inner, leaf)
    for coefficient, term in zip(kernel.coefficients, kernel.terms)
    if coefficient
    for inner, leaf in _leaves(term)
  ]


def _choose(kernel, x, y, estimator, method, cos_sin):
  """The function (x, y, x_weights, y_weights, with_weights) -> Discrepancy."""
  line = x.shape.rank == 2 and estimator is Estimator.BIASED
  gaussian = line and isinstance(kernel, kernels.GaussianMixture)
  absolute = line and kernel == kernels.Unrectified(1.0)
  few = x.shape[1] + y.shape[1] <= _FEW_PARTICLES
  if method is Method.AUTO:
    if absolute and x.shape[1] + y.shape[1] > _FEW_TO_SORT:
      method = Method.SORTED
    elif absolute:
      pass  # by pairs, in a way of its own
    elif gaussian and not few:
      method = Method.SPECTRAL
    else:
      method = Method.PAIRWISE
  if method is Method.SPECTRAL and gaussian:
    return lambda *args: _spectral(kernel, cos_sin, *args)
  if absolute and method is Method.AUTO:
    return lambda *args: energy.discrepancy_by_pairs(
      *args[:-1], with_weights=args[-1]
    )
  if method is Method.SORTED and absolute:
    return lambda *args: energy.discrepancy(*args[:-1], with_weights=args[-1])
  if method is Method.PAIRWISE:
    return lambda *args: _pairwise(kernel, estimator, *args)
  raise errors.UserError(
    f"method {method.value!r} serves the biased estimator on [B, N] particles"
    " with "
    + (
      "Gaussian kernels"
      if method is Method.SPECTRAL
      else "the unrectified kernel of order 1"
    )
    + f", got {kernel} with the"
    f" {estimator.value} estimator on {x.shape}; use Method.AUTO"
  )


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
  kernel, cos_sin, x, y, x_weights, y_weights, with_weights
) -> Discrepancy:
  """Frequencies, or pairs where the range asks for too many frequencies."""
  num_x, num_y = x.shape[1], y.shape[1]
  order, places = _interleave(num_x, num_y)
  z = tf.gather(tf.concat([x, y], axis=1), order, axis=1)
  # Rounding errors average out over many particles; few are cheap in float64.
  if num_x + num_y < _FEW_FOR_FLOAT32:
    z = tf.cast(z, tf.float64)
  # Scaled so that uniform weights are whole numbers and sum to 0 exactly.
  scale = math.lcm(num_x, num_y)
  signed = tf.concat([x_weights, -y_weights], axis=1) * scale
  signed = tf.cast(tf.gather(signed, order, axis=1), z.dtype)
  bandwidths = kernel.bandwidths
  if not tf.is_tensor(bandwidths):  # numbers, which TensorFlow takes as float32
    bandwidths = tf.constant(bandwidths, z.dtype)
  bandwidths = tf.cast(bandwidths, z.dtype)
  bandwidths = tf.reshape(bandwidths, [-1, bandwidths.shape[-1]])
  sizes = spectral.Sizes(
    tf.constant(kernel.coefficients, z.dtype),
    tf.constant(kernel.tails, z.dtype) if any(kernel.tails) else None,
  )
  grid = spectral.grid(z, bandwidths)

  def by_frequencies():
    result = spectral.discrepancy(
      signed,
      bandwidths,
      sizes,
      grid,
      with_weights=with_weights,
      cos_sin=cos_sin,
    )
    parts = (
      result.value / scale**2,
      tf.gather(result.d_particles, places, axis=1) / scale**2,
      tf.gather(result.d_weights, places, axis=1) / scale
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
  parts = tf.cond(grid.num_blocks <= limit, by_frequencies, by_pairs)
  return Discrepancy(*parts)


def _interleave(num_x: int, num_y: int) -> Tuple[np.ndarray, np.ndarray]:
  """An order of x and y in which they take turns, and where it puts the x."""
  keys = np.concatenate(
    [(np.arange(num) // _INTERLEAVE + 0.5) / num for num in (num_x, num_y)]
  )
  order = np.argsort(keys, kind="stable")
  return order, np.argsort(order)[:num_x]


def _weights(particles, log_weights, name) -> tf.Tensor:
  """[B, N] weights that sum to 1; in float64, or rounding would change it."""
  if log_weights is None:
    count = particles.shape[1]
    return tf.fill(tf.shape(particles)[:2], tf.constant(1 / count, tf.float64))
  log_weights = tf.convert_to_tensor(log_weights)
  if not log_weights.shape.is_compatible_with(particles.shape[:2]):
    raise errors.UserError(
      f"{name} must have one log-weight for each particle,"
      f" {particles.shape[:2]}, got {log_weights.shape}"
    )
  return tf.nn.softmax(tf.cast(log_weights, tf.float64), axis=1)


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
