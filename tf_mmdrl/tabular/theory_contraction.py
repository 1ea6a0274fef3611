"""Theorem 2: where the distributional Bellman operator contracts.

Part 1 on random processes; part 2 by the counterexample of Appendix A.3.
"""

import math
from typing import List, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernel_names, kernels
from tf_mmdrl.tabular import claims, dynamic_programming, exact_discrepancy
from tf_mmdrl.tabular import process as process_lib

_CONTRACTING = (
  "unrectified:0.5",
  "unrectified:1",
  "unrectified:1.5",
  "unrectified:0.5+unrectified:1.5",
  "2*unrectified:1+0.1*unrectified:2",
)
_ROUNDING = 1e-9


def random_processes(
  count: int, gamma: float, generator: np.random.Generator
) -> process_lib.RewardProcess:
  """`count` processes with 4 states, 3 outcomes and random everything."""
  shape = [count, 4, 3]
  return process_lib.RewardProcess(
    # Of low concentration: nearly deterministic states, where the bound is
    # tight, occur as well as spread ones.
    probabilities=generator.dirichlet(np.full(3, 0.3), shape[:2]),
    rewards=generator.normal(size=shape),
    successors=generator.integers(4, size=shape),
    discounts=np.full(shape, gamma),
  )


def random_returns(
  count: int, generator: np.random.Generator
) -> exact_discrepancy.Particles:
  """Weighted particles [count, 4, 5] for `random_processes`."""
  scale = np.exp(generator.normal(size=[count, 1, 1]))
  values = scale * generator.normal(size=[count, 4, 5])
  return values, generator.dirichlet(np.ones(5), [count, 4])


def contraction_ratios(
  kernel: kernels.Kernel, gamma: float, count: int, seed: int = 0
) -> np.ndarray:
  """[count] ratios MMD_inf(T mu, T nu) / MMD_inf(mu, nu)."""
  generator = np.random.default_rng(seed)
  process = random_processes(count, gamma, generator)
  mu, nu = (random_returns(count, generator) for _ in range(2))
  before = dynamic_programming.mmd_infinity(mu, nu, kernel)
  after = dynamic_programming.mmd_infinity(
    dynamic_programming.bellman(process, mu),
    dynamic_programming.bellman(process, nu),
    kernel,
  )
  return after / before


def contraction(count: int = 1000) -> claims.Result:
  """Theorem 2.1: the worst ratio over random processes against the bound."""
  rows, curves = [], {}
  for name in _CONTRACTING:
    kernel = kernel_names.parse(name)
    order = kernel.properties.contraction_order or 0.0
    for gamma in (0.5, 0.9, 0.99):
      ratios = contraction_ratios(kernel, gamma, count)
      bound = gamma ** (order / 2)
      broken = int((ratios > bound * (1 + _ROUNDING)).sum())
      rows.append(
        claims.Claim(
          claim="Theorem 2.1: a contraction by gamma^(alpha/2)",
          setting=f"{name}; gamma {gamma}; worst of {count} random MDPs,"
          f" {broken} above the bound",
          measured=float(ratios.max()),
          bound=bound,
          holds=broken == 0,
        )
      )
      if gamma == 0.9:
        share = np.arange(1, count + 1) / count
        curves[name] = (np.sort(ratios / bound), share)
  return claims.Result(rows, {"contraction": curves})


# Appendix A.3, its table of parameters.
REWARDS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
P = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
Q = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
SIGMA = 0.1


def reward_probabilities(gamma: float, alpha: float) -> np.ndarray:
  """R of Appendix A.3: epsilon n - 1 times and the rest on the last reward.

  epsilon solves (n - 1) eps^2 + (1 - (n - 1) eps)^2 = gamma^(2 alpha).
  """
  n = REWARDS.size
  missing = 1 - gamma ** (2 * alpha)
  epsilon = (1 - math.sqrt(1 - n * missing / (n - 1))) / n
  return np.append(np.full(n - 1, epsilon), 1 - (n - 1) * epsilon)


def counterexample(
  gamma: float, alpha: float
) -> Tuple[
  process_lib.RewardProcess,
  exact_discrepancy.Particles,
  exact_discrepancy.Particles,
]:
  """The two-state MDP of Appendix A.3 and its mu and nu."""
  n = REWARDS.size
  both = np.ones([2, 1])
  process = process_lib.RewardProcess(
    probabilities=both * reward_probabilities(gamma, alpha),
    rewards=both * REWARDS,
    successors=np.ones([2, n], int),  # s_0 -> s_1, and s_1 absorbs
    discounts=np.full([2, n], gamma),
  )
  return process, (both * REWARDS, both * P), (both * REWARDS, both * Q)


def expansion_ratio(
  kernel: kernels.Kernel, gamma: float, alpha: float
) -> float:
  """MMD_inf(T mu, T nu) / MMD_inf(mu, nu) in the counterexample."""
  process, mu, nu = counterexample(gamma, alpha)
  after = dynamic_programming.mmd_infinity(
    dynamic_programming.bellman(process, mu),
    dynamic_programming.bellman(process, nu),
    kernel,
  )
  return float(after / dynamic_programming.mmd_infinity(mu, nu, kernel))


def no_contraction() -> claims.Result:
  """Theorem 2.2: the counterexample for alpha from 0 to 1.

  A ratio above gamma^alpha refutes a contraction of that order; a ratio above
  1 refutes every contraction at once.
  """
  rows: List[claims.Claim] = []
  curves: dict = {}
  alphas = np.concatenate([[0.001, 0.01], np.linspace(0.05, 1, 20)])
  cases = {
    "gaussian": kernels.gaussian(2 * SIGMA**2),
    "exp-prod": kernels.exp_prod(SIGMA),
  }
  for name, kernel in cases.items():
    panel = curves[name] = {}
    for gamma in (0.8, 0.9):
      ratios = np.array([expansion_ratio(kernel, gamma, a) for a in alphas])
      panel[f"ratio, γ = {gamma}"] = (alphas, ratios)
      panel[f"γ^α, γ = {gamma}"] = (alphas, gamma**alphas)
      for alpha in (0.01, 0.1, 0.5, 1.0):
        ratio = expansion_ratio(kernel, gamma, alpha)
        rows.append(
          claims.Claim(
            claim="Theorem 2.2: no contraction by gamma^alpha",
            setting=f"{name} sigma {SIGMA}; gamma {gamma}; alpha {alpha}",
            measured=ratio,
            bound=gamma**alpha,
            holds=ratio > gamma**alpha,
          )
        )
    rows.extend(_proof_steps(name, kernel))
  return claims.Result(rows, curves)


def _proof_steps(name: str, kernel: kernels.Kernel) -> List[claims.Claim]:
  """The two steps of A.3's proof that can be checked, at gamma 0.8, alpha 1.

  With g_r the difference of the embeddings of eta_r and kappa_r, the MMD^2 of
  the mixtures is sum_rr' p_r p_r' <g_r, g_r'>; the proof takes MMD^2(eta_r,
  kappa_r') for the inner product, and drops the terms of r != r' as positive.
  """
  gamma, alpha = 0.8, 1.0
  p = reward_probabilities(gamma, alpha)
  pairs, inner = _cross_terms(kernel, gamma)
  mixtures = p @ inner @ p
  claimed = p @ pairs @ p
  dropped = p @ (inner - np.diag(np.diag(inner))) @ p
  setting = f"{name} sigma {SIGMA}; gamma {gamma}; alpha {alpha}"
  return [
    claims.Claim(
      "A.3, step 1: MMD^2 of the mixtures = sum_rr' p_r p_r' MMD^2",
      setting,
      float(mixtures),
      float(claimed),
      bool(np.isclose(mixtures, claimed)),
    ),
    claims.Claim(
      "A.3, step 2: what is dropped from that sum is positive",
      setting,
      float(dropped),
      0.0,
      bool(dropped > 0),
    ),
  ]


def _cross_terms(
  kernel: kernels.Kernel, gamma: float
) -> Tuple[np.ndarray, np.ndarray]:
  """[n, n] MMD^2(eta_r, kappa_r') and <g_r, g_r'>."""
  n = REWARDS.size
  moved = REWARDS[:, None] + gamma * REWARDS  # [n, n]: r + gamma r_i
  eta = (moved[:, None].repeat(n, 1), np.broadcast_to(P, [n, n, n]))
  kappa = (moved[None].repeat(n, 0), np.broadcast_to(Q, [n, n, n]))
  x = tf.constant(moved)
  gram = kernel(x[:, None, :, None], x[None, :, None, :]).numpy()
  inner = np.einsum("i,rsij,j->rs", P - Q, gram, P - Q)
  return exact_discrepancy.mmd_squared(eta, kappa, kernel), inner
