"""Theorem 1: which kernels tell distributions apart; the moment expansion."""

import math
from typing import Tuple

import numpy as np

from tf_mmdrl.ops import kernel_names, kernels
from tf_mmdrl.tabular import claims, exact_discrepancy

_KERNELS = (
  "gaussian:1",
  "unrectified:0.5",
  "unrectified:1",
  "unrectified:1.5",
  "unrectified:2",
  "laplace:1",
  "multiquadric:1",
  "exp_prod:1",
)
_MATCHED = range(6)
_ZERO = 1e-7  # the square root of what float64 leaves of a zero MMD^2


def matched_pair(
  order: int,
) -> Tuple[exact_discrepancy.Particles, exact_discrepancy.Particles]:
  """Two different distributions with equal moments up to `order`.

  The alternating binomial weights (-1)^i C(m + 1, i) on the points 0 ... m + 1
  annihilate every polynomial of degree m; their positive and their negative
  part are the two distributions, on points scaled to [-1, 1].
  """
  points = np.linspace(-1, 1, order + 2)
  weights = np.array([math.comb(order + 1, i) for i in range(order + 2)])
  even = np.arange(order + 2) % 2 == 0
  positive, negative = weights * even, weights * ~even
  return (
    (points, positive / positive.sum()),
    (points, negative / negative.sum()),
  )


def separation() -> claims.Result:
  """Theorem 1: the MMD between distributions that share 0 to 5 moments.

  A kernel of a metric must leave every one of them above zero. Of order 2 the
  unrectified kernel compares means only: equal means give 0.
  """
  rows, curves = [], {}
  for name in _KERNELS:
    kernel = kernel_names.parse(name)
    distances = np.array(
      [exact_discrepancy.mmd(*matched_pair(m), kernel) for m in _MATCHED]
    )
    curves[name] = (np.array(_MATCHED), distances)
    metric = kernel.properties.characteristic
    rows.append(
      claims.Claim(
        claim="Theorem 1: " + ("a metric" if metric else "not a metric"),
        setting=f"{name}; least MMD of 6 pairs that share 0 to 5 moments",
        measured=float(distances.min()),
        bound=0.0,
        holds=bool((distances.min() > _ZERO) == metric),
      )
    )
  return claims.Result(rows, {"separation": curves})


def moment_series(
  p: exact_discrepancy.Particles,
  q: exact_discrepancy.Particles,
  sigma: float,
  terms: int,
) -> np.ndarray:
  """[terms] partial sums of the Gaussian kernel's moment expansion.

  MMD^2 = sum_n (m_n(p) - m_n(q))^2 / (sigma^2n n!), where
  m_n = E[exp(-x^2 / (2 sigma^2)) x^n].
  """
  orders = np.arange(terms)
  # x^n / (sigma^n sqrt(n!)) as a running product, which cannot overflow.
  steps = np.concatenate([[1.0], 1 / (sigma * np.sqrt(orders[1:]))])

  def moments(particles):
    x, weights = (np.asarray(part)[:, None] for part in particles)
    factors = np.where(orders == 0, 1.0, x) * steps
    damped = np.exp(-(x**2) / (2 * sigma**2)) * np.cumprod(factors, -1)
    return (weights * damped).sum(0)

  return np.cumsum((moments(p) - moments(q)) ** 2)


def expansion(terms: int = 80) -> claims.Result:
  """The series against the closed form, on random distributions."""
  generator = np.random.default_rng(0)
  p, q = (
    (generator.normal(size=20), generator.dirichlet(np.ones(20)))
    for _ in range(2)
  )
  rows, curves = [], {}
  for sigma in (0.5, 1.0, 2.0):
    exact = exact_discrepancy.mmd_squared(p, q, kernels.gaussian(2 * sigma**2))
    errors = np.abs(moment_series(p, q, sigma, terms) - exact) / exact
    label = f"sigma = {sigma:g}"
    curves[f"σ = {sigma:g}"] = (
      np.arange(1, terms + 1),
      np.maximum(errors, 1e-16),
    )
    rows.append(
      claims.Claim(
        claim="Moment expansion of the Gaussian kernel",
        setting=f"{label}; relative error of {terms} terms",
        measured=float(errors[-1]),
        bound=1e-10,
        holds=bool(errors[-1] < 1e-10),
      )
    )
  return claims.Result(rows, {"expansion": curves})
