"""Slow, obviously right float64 NumPy versions of the mathematics."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def value(kernel, x, y):
  """k(x, y) - k(0), from the kernel's definition.

  The constant k(0) drops out of every discrepancy; without it float64 keeps
  more digits.

  Args:
    kernel: a kernel.
    x: [..., D].
    y: [..., D].

  Returns:
    [...].
  """
  d2 = np.sum((x - y) ** 2, axis=-1)
  name = type(kernel).__name__
  if name == "GaussianMixture":
    total, d = np.zeros_like(d2), np.sqrt(d2)
    for h, c, t in zip(kernel.bandwidths, kernel.coefficients, kernel.tails):
      fall = np.expm1(-d2 / h)
      total += c * fall
      if t:
        blurred = d * _erf(d / np.sqrt(h)) + np.sqrt(h / np.pi) * fall
        total -= t * blurred
    return total
  if name == "Unrectified":
    return -(d2 ** (kernel.alpha / 2))
  if name == "Laplace":
    return np.expm1(-np.sqrt(d2) / kernel.h)
  if name == "Multiquadric":
    return 1 - np.sqrt(1 + d2 / kernel.h)
  if name == "ExpProd":
    return np.expm1(np.sum(x * y, axis=-1) / kernel.sigma**2)
  assert name == "Sum", name
  pairs = zip(kernel.coefficients, kernel.terms)
  return sum(c * value(k, x, y) for c, k in pairs)


def gradient(kernel, x, y):
  """dk(x, y) / dx, [..., D]; 0 where an unsmooth kernel's points coincide."""
  d = x - y
  d2 = np.sum(d**2, axis=-1, keepdims=True)
  name = type(kernel).__name__
  if name == "GaussianMixture":
    total, size = np.zeros_like(d), np.sqrt(d2)
    for h, c, t in zip(kernel.bandwidths, kernel.coefficients, kernel.tails):
      total -= 2 * c * d / h * np.exp(-d2 / h)
      if t:
        total -= t * _erf(size / np.sqrt(h)) * d / np.where(size > 0, size, 1.0)
    return total
  if name == "Sum":
    pairs = zip(kernel.coefficients, kernel.terms)
    return sum(c * gradient(k, x, y) for c, k in pairs)
  if name == "ExpProd":
    scale = kernel.sigma**2
    return y / scale * np.exp(np.sum(x * y, -1, keepdims=True) / scale)
  if name == "Multiquadric":
    return -d / kernel.h / np.sqrt(1 + d2 / kernel.h)
  safe = np.where(d2 > 0, d2, 1.0)
  if name == "Unrectified":
    return np.where(
      d2 > 0, -kernel.alpha * safe ** (kernel.alpha / 2 - 1) * d, 0
    )
  assert name == "Laplace", name
  root = np.sqrt(safe)
  return np.where(d2 > 0, -d / root / kernel.h * np.exp(-root / kernel.h), 0)


def softmax(log_weights):
  weights = np.exp(np.float64(log_weights) - np.max(log_weights))
  return weights / weights.sum()


def mmd_squared(
  kernel, x, y, x_weights=None, y_weights=None, *, unbiased=False
):
  """MMD^2 of one example and its derivatives, as sums over pairs.

  Args:
    kernel: a kernel.
    x: [N] or [N, D].
    y: [M] or [M, D].
    x_weights: [N], summing to 1.
    y_weights: [M], summing to 1.
    unbiased: leave out the pairs of a particle with itself.

  Returns:
    The value, and the derivatives in x (its shape).
  """
  shape = np.shape(x)
  x = np.float64(x).reshape([len(x), -1])
  y = np.float64(y).reshape([len(y), -1])
  a = np.full(len(x), 1 / len(x)) if x_weights is None else x_weights
  b = np.full(len(y), 1 / len(y)) if y_weights is None else y_weights
  # Each pair of particles, [N, N], [N, M] and [M, M].
  xx, yy = _pairs(a, unbiased), _pairs(b, unbiased)
  xy = np.outer(a, b)
  total = np.sum(xx * value(kernel, x[:, None], x))
  total -= 2 * np.sum(xy * value(kernel, x[:, None], y))
  total += np.sum(yy * value(kernel, y[:, None], y))
  slope = 2 * np.sum(xx[..., None] * gradient(kernel, x[:, None], x), axis=1)
  slope -= 2 * np.sum(xy[..., None] * gradient(kernel, x[:, None], y), axis=1)
  return total, slope.reshape(shape)


def _pairs(weights, unbiased):
  """The weight of each pair within a set; none of itself if unbiased."""
  pairs = np.outer(weights, weights)
  if unbiased:
    np.fill_diagonal(pairs, 0)
    pairs /= 1 - np.sum(weights**2)
  return pairs
