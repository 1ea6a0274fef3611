"""Distributional dynamic programming on finite processes, exactly.

The return distributions of all states are weighted particles: values and
weights, each [..., S, N], with any batch of processes in front.
"""

import numpy as np

from tf_mmdrl.ops import kernels
from tf_mmdrl.tabular import exact_discrepancy
from tf_mmdrl.tabular import process as process_lib

_MAX_SWEEPS = 10_000


def bellman(
  process: process_lib.RewardProcess, returns: exact_discrepancy.Particles
) -> exact_discrepancy.Particles:
  """The distributional Bellman operator T^pi, with nothing approximated.

  Args:
    process: [..., S, J] outcomes.
    returns: values and weights, each [..., S, N].

  Returns:
    Values and weights, each [..., S, J N]: the mixture over the outcomes of the
    returns r + d Z(s').
  """
  values, weights = returns
  moved = process.rewards[..., None] + process.discounts[..., None] * _at(
    values, process.successors
  )
  mixed = process.probabilities[..., None] * _at(weights, process.successors)
  flat = (*moved.shape[:-2], -1)
  return moved.reshape(flat), mixed.reshape(flat)


def _at(table: np.ndarray, states: np.ndarray) -> np.ndarray:
  """[..., S, N] at [..., S, J] states -> [..., S, J, N]."""
  flat = states.reshape(*states.shape[:-2], -1, 1)
  taken = np.take_along_axis(table, flat, axis=-2)
  return taken.reshape(*states.shape, table.shape[-1])


def mmd_infinity(
  p: exact_discrepancy.Particles,
  q: exact_discrepancy.Particles,
  kernel: kernels.Kernel,
) -> np.ndarray:
  """[...] the supremum MMD over the states (the paper's Definition 1)."""
  return exact_discrepancy.mmd(p, q, kernel).max(-1)


def return_bounds(process: process_lib.RewardProcess) -> tuple:
  """The least and greatest return of any state, by value iteration."""
  bounds = []
  for best in (np.min, np.max):
    value = np.zeros(process.rewards.shape[0])
    for _ in range(_MAX_SWEEPS):
      possible = process.rewards + process.discounts * value[process.successors]
      last, value = value, best(possible, -1)
      if np.abs(value - last).max() < 1e-12:
        break
    bounds.append(best(value))
  return tuple(bounds)


def fixed_point(
  process: process_lib.RewardProcess,
  *,
  atoms: int = 1001,
  tolerance: float = 1e-10,
) -> exact_discrepancy.Particles:
  """The return distributions: the fixed point of T^pi, on a fine grid.

  The operator multiplies the number of particles, so each sweep ends with
  C51's projection onto `atoms` even steps between the least and the greatest
  return. The projection keeps means and is no expansion in the Cramer distance,
  so the sweeps converge; the gap of the grid is what is lost.

  Args:
    process: one process (no batch), its discounts below 1.
    atoms: how fine the grid is.
    tolerance: sweeps end when no probability changes by more.

  Returns:
    Values and weights, each [S, atoms].
  """
  low, high = return_bounds(process)
  support = np.linspace(low, max(high, low + 1e-9), atoms)
  gap = support[1] - support[0]
  states = process.rewards.shape[0]
  values = np.broadcast_to(support, [states, atoms])
  weights = np.full([states, atoms], 1 / atoms)
  for _ in range(_MAX_SWEEPS):
    moved, mixed = bellman(process, (values, weights))
    last, weights = weights, _project(moved, mixed, low, gap, atoms)
    if np.abs(weights - last).max() < tolerance:
      break
  return values, weights


def _project(values, weights, low, gap, atoms) -> np.ndarray:
  """C51's projection by counting, for grids too fine for a dense matrix."""
  position = np.clip((values - low) / gap, 0, atoms - 1)
  left = np.minimum(position.astype(int), atoms - 2)
  share = position - left
  result = np.zeros([values.shape[0], atoms])
  rows = np.arange(values.shape[0])[:, None]
  np.add.at(result, (rows, left), weights * (1 - share))
  np.add.at(result, (rows, left + 1), weights * share)
  return result
