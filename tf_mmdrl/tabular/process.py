"""Finite Markov reward processes: an MDP whose policy is folded in.

A state here stands for a state-action pair of the paper. From state s outcome
j has the probability p[s, j], pays r[s, j] and leads to the state s'[s, j],
whose return counts with the discount d[s, j]; a discount of 0 ends the episode.
So the return obeys Z(s) = r + d Z(s') over the outcomes, Eq. (1) of the paper.
"""

import dataclasses
import math

import numpy as np

from tf_mmdrl.core import errors


@dataclasses.dataclass(frozen=True)
class RewardProcess:
  """A finite Markov reward process, or a batch of them.

  Attributes:
    probabilities: [..., S, J] of each outcome; they sum to 1 over J.
    rewards: [..., S, J].
    successors: [..., S, J] states, integers below S.
    discounts: [..., S, J], from 0 to 1; 0 where the episode ends.
  """

  probabilities: np.ndarray
  rewards: np.ndarray
  successors: np.ndarray
  discounts: np.ndarray

  def __post_init__(self):
    shapes = {np.shape(part) for part in dataclasses.astuple(self)}
    if len(shapes) != 1:
      raise errors.UserError(
        "the four parts of a reward process must share one shape [..., S, J],"
        f" got {sorted(shapes)}"
      )
    if not np.allclose(self.probabilities.sum(-1), 1):
      raise errors.UserError(
        "probabilities must sum to 1 over the outcomes, got sums from"
        f" {self.probabilities.sum(-1).min()} to"
        f" {self.probabilities.sum(-1).max()}"
      )
    if self.discounts.min() < 0 or self.discounts.max() > 1:
      raise errors.UserError(
        f"discounts must lie in [0, 1], got {self.discounts.min()} to"
        f" {self.discounts.max()}"
      )


def raw_moments(process: RewardProcess, order: int) -> np.ndarray:
  """The exact moments E[Z^n] of the returns, by one linear system per order.

  E[Z(s)^n] = sum_j p_j sum_i C(n, i) r_j^(n-i) d_j^i E[Z(s'_j)^i], where only
  the term i = n is unknown: (I - P D^n) m_n = what is known.

  Args:
    process: one process (no batch) whose episodes end or whose discounts lie
      below 1.
    order: the highest n.

  Returns:
    [order + 1, S] moments, the zeroth (all 1) first.
  """
  p, r = process.probabilities, process.rewards
  d, successors = process.discounts, process.successors
  states = p.shape[0]
  moments = np.ones([order + 1, states])
  for n in range(1, order + 1):
    known = sum(
      math.comb(n, i) * r ** (n - i) * d**i * moments[i][successors]
      for i in range(n)
    )
    system = np.eye(states)
    rows = np.broadcast_to(np.arange(states)[:, None], p.shape)
    np.subtract.at(system, (rows, successors), p * d**n)
    moments[n] = np.linalg.solve(system, (p * known).sum(-1))
  return moments


def central_from_raw(raw: np.ndarray) -> np.ndarray:
  """The mean, then the central moments from order 2 on.

  Args:
    raw: [order + 1, ...] raw moments, the zeroth first.

  Returns:
    [order, ...]: the mean, E[(Z - mean)^2], E[(Z - mean)^3], ...
  """
  mean = raw[1]
  central = [
    sum(math.comb(n, i) * raw[i] * (-mean) ** (n - i) for i in range(n + 1))
    for n in range(2, len(raw))
  ]
  return np.stack([mean, *central])


def central_moments(
  values: np.ndarray, weights: np.ndarray, order: int
) -> np.ndarray:
  """The mean and central moments of weighted particles.

  Args:
    values: [..., N].
    weights: broadcastable to [..., N], summing to 1 over N.
    order: the highest moment.

  Returns:
    [..., order]: the mean, then the central moments of orders 2 to `order`.
  """
  mean = (weights * values).sum(-1, keepdims=True)
  centred = values - mean
  higher = [(weights * centred**n).sum(-1) for n in range(2, order + 1)]
  return np.stack([mean[..., 0], *higher], -1)
