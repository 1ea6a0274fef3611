"""A model of few transitions: what follows is what followed nearby.

Kernel-based reinforcement learning (Ormoneit and Sen, 2002) for distributions:
after action a in state s comes what came after a in the logged states near s,
each with a weight that falls with the distance. This is a finite process over
the logged transitions, so its return distributions are computed, not learnt,
and an average of what was seen cannot diverge. For a hundred to a few thousand
transitions; the network of `fitting` is for more.
"""

from typing import NamedTuple, Tuple

import numpy as np

from tf_mmdrl.core import errors, notices
from tf_mmdrl.offline import laws
from tf_mmdrl.offline.blocks import Block

_SWEEPS, _TOLERANCE = 5_000, 1e-6
MOST = 1000  # transitions: the process has their square


class Neighbours(NamedTuple):
  """Return distributions of the logged next states.

  Attributes:
    block: the transitions.
    bandwidth: of the kernel, in deviations of the scaled features.
    gamma: discount.
    returns: values and weights, each [T, K], of each transition's next state.
  """

  block: Block
  bandwidth: float
  gamma: float
  returns: Tuple[np.ndarray, np.ndarray]

  def law(
    self, observations: np.ndarray, probabilities: np.ndarray
  ) -> Tuple[np.ndarray, np.ndarray]:
    """The policy's return from some states.

    Args:
      observations: [B, ...], scaled.
      probabilities: [B, A] of the policy there.

    Returns:
      Values and weights, each [T K], of the mean over the states.
    """
    near = _near(self.block, observations, probabilities, self.bandwidth)
    values, weights = self._taken()
    return values.ravel(), (near.mean(axis=0)[:, None] * weights).ravel()

  def on_grid(
    self, observations: np.ndarray, probabilities: np.ndarray, grid: np.ndarray
  ) -> np.ndarray:
    """[B, K] the policy's return from each state, on a grid of returns."""
    near = _near(self.block, observations, probabilities, self.bandwidth)
    values, weights = self._taken()
    rows = np.repeat(np.arange(len(values)), values.shape[1])
    count = len(values)
    return near @ laws.spread(
      rows, values.ravel(), weights.ravel(), grid, count
    )

  def _taken(self) -> Tuple[np.ndarray, np.ndarray]:
    """Values and weights, each [T, K], of each transition's return."""
    values, weights = self.returns
    discounts = self.gamma * self.block.discounts
    return self.block.rewards[:, None] + discounts[:, None] * values, weights


def fit(
  block: Block, *, gamma: float, bandwidth: float = 0.0, atoms: int = 401
) -> Neighbours:
  """Computes the return distributions of a block's next states.

  Args:
    block: at most `MOST` transitions, scaled.
    gamma: discount, below 1 unless all episodes end.
    bandwidth: of the kernel; the median distance to the nearest logged state
      of the same action if 0.
    atoms: how finely returns are computed.

  Returns:
    The model.
  """
  if len(block.actions) > MOST:
    raise errors.UserError(
      f"the neighbours' model takes at most {MOST:,} transitions, got"
      f" {len(block.actions):,}; fit an agent instead"
    )
  bandwidth = bandwidth or _spacing(block)
  near = _near(
    block, block.next_observations, block.next_probabilities, bandwidth
  )
  return Neighbours(block, bandwidth, gamma, _solve(block, near, gamma, atoms))


def _solve(
  block: Block, near: np.ndarray, gamma: float, atoms: int
) -> Tuple[np.ndarray, np.ndarray]:
  """Values and weights, each [T, K]: the fixed point on an even grid.

  As `tabular.fixed_point`, but what transition j makes of its next state's law
  does not depend on where it is entered from: a sweep moves T laws, and mixes
  them by one product of matrices.
  """
  rewards, discounts = block.rewards, gamma * block.discounts
  bounds = []
  for best in (np.min, np.max):
    value = np.zeros(len(rewards))
    for _ in range(_SWEEPS):
      last, moved = value, rewards + discounts * value
      value = np.array([best(moved[row > 0]) for row in near])
      if np.abs(value - last).max() < 1e-9:
        break
    bounds.append(float(best(value)))
  grid = np.linspace(bounds[0], max(bounds[1], bounds[0] + 1e-6), atoms)
  moved = (rewards[:, None] + discounts[:, None] * grid).ravel()
  left, share = laws.places(moved, grid)
  flat = np.repeat(np.arange(len(rewards)), atoms) * atoms + left
  weights = np.full([len(rewards), atoms], 1 / atoms)
  for _ in range(_SWEEPS):
    last = weights
    weights = near @ laws.put(flat, share, weights.ravel(), weights.shape)
    if np.abs(weights - last).max() < _TOLERANCE:
      break
  else:
    notices.warn(
      f"the neighbours' distribution still changed after {_SWEEPS:,} sweeps: it"
      " is not the fixed point; lower --gamma, or leave neighbours out of"
      " --estimators"
    )
  return np.broadcast_to(grid, weights.shape), weights


def _near(block: Block, seen, probabilities, bandwidth: float) -> np.ndarray:
  """[B, T] with which probability a transition follows, over pi's actions."""
  flat = block.observations.reshape([len(block.actions), -1])
  squares = _squares(seen.reshape([len(seen), -1]), flat)
  found = np.zeros(squares.shape)
  for action in range(probabilities.shape[1]):
    rows = block.actions == action
    if not rows.any():
      rows = np.ones_like(rows)  # never taken: what any action did there
    part = squares[:, rows]
    part = part - part.min(axis=1, keepdims=True)  # the nearest one counts 1
    weights = np.exp(-part / (2 * bandwidth**2)) * block.weights[rows]
    weights /= weights.sum(axis=1, keepdims=True)
    found[:, rows] += probabilities[:, action, None] * weights
  return found / found.sum(axis=1, keepdims=True)


def _spacing(block: Block) -> float:
  """How far the nearest logged state of the same action usually is."""
  flat = block.observations.reshape([len(block.actions), -1])
  nearest = []
  for action in np.unique(block.actions):
    part = flat[block.actions == action]
    squares = _squares(part, part)
    np.fill_diagonal(squares, np.inf)
    if len(part) > 1:
      nearest.append(np.sqrt(squares.min(axis=1)))
  spacing = float(np.median(np.concatenate(nearest))) if nearest else 0.0
  return max(spacing, 1e-3)


def _squares(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """[B, T] squared distances between rows."""
  one, other = one.astype(np.float64), other.astype(np.float64)
  products = one @ other.T
  squares = (one**2).sum(1)[:, None] + (other**2).sum(1)[None] - 2 * products
  return np.maximum(squares, 0)
