"""Estimates of a policy's return distribution by importance weights.

With rho_t the product of pi(a|s) / b(a|s) over the first t + 1 steps, and G_t
the discounted rewards of these steps, the expectation of rho_T 1{G_T <= x} is
the distribution function of the policy's return (Chandak et al., "Universal
Off-Policy Evaluation", 2021). Three variants have less variance:

* per decision: 1{0 <= x} + sum_t rho_t (1{G_t <= x} - 1{G_(t-1) <= x}), where
  each reward has the weight of the actions up to it; its mean is per-decision
  importance sampling.
* self-normalised: weights are divided by their sum; clipped: after they were
  cut at a limit.
* doubly robust: as per decision, but with the fitted return of what follows:
  the law of G_t + gamma^(t+1) Z(s', pi) less that of G_(t-1) + gamma^t Z(s, a),
  which an exact fit makes free of variance (Huang et al., "Off-Policy Risk
  Assessment for Markov Decision Processes", 2022).
"""

from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from tf_mmdrl.offline import blocks, laws, neighbours
from tf_mmdrl.offline.dataset import DataSet, Episode
from tf_mmdrl.offline.laws import Estimate

ORDINARY, PER_DECISION = "ordinary", "per_decision"
NORMALISED, CLIPPED = "self_normalised", "clipped"
FITTED, ROBUST = "fitted", "doubly_robust"
NEIGHBOURS = "neighbours"
# Those that need no behaviour probabilities first.
MODELS = (FITTED, NEIGHBOURS)
WEIGHTED = (ROBUST, ORDINARY, PER_DECISION, NORMALISED, CLIPPED)
NAMES = (*MODELS, *WEIGHTED)
# (observations [B, ...]) -> values and weights, each [B, A, N].
Returns = Callable[[np.ndarray], Tuple[np.ndarray, np.ndarray]]
_LARGEST = 600.0  # logarithm of a weight: exp is finite
_GROUP = 2048  # steps whose returns are asked for at once


class Path(NamedTuple):
  """An episode as importance weights see it.

  Attributes:
    partial: [T + 1] discounted rewards before each step, and at the end.
    logs: [T] log rho_t.
  """

  partial: np.ndarray
  logs: np.ndarray

  @property
  def weights(self) -> np.ndarray:
    """[T] rho_t, as far as numbers go."""
    return np.exp(np.minimum(self.logs, _LARGEST))


def paths(
  data: DataSet, policy: blocks.Probabilities, gamma: float
) -> List[Path]:
  """The paths of all episodes; the behaviour's probabilities must be known."""
  found = []
  for episode in data.read(range(len(data))):
    chances = blocks.ask(policy, episode.observations)
    taken = chances[np.arange(len(chances)), episode.actions]
    assert episode.behaviour is not None
    with np.errstate(divide="ignore"):
      logs = np.cumsum(np.log(taken) - np.log(episode.behaviour))
    found.append(Path(partial_returns(episode.rewards, gamma), logs))
  return found


def partial_returns(rewards: np.ndarray, gamma: float) -> np.ndarray:
  """[T + 1] or [T + 1, D] discounted rewards before each step, and of all."""
  factors = gamma ** np.arange(len(rewards))
  discounted = (factors * rewards.T).T
  return np.concatenate(
    [np.zeros_like(discounted[:1]), np.cumsum(discounted, axis=0)]
  )


def estimates(
  found: Sequence[Path], grid: np.ndarray, clip: float
) -> List[Estimate]:
  """The four estimates that need no fit."""
  episodes = np.arange(len(found))
  returns = np.array([path.partial[-1] for path in found])
  logs = np.array([path.logs[-1] for path in found])

  def weighted(name, logs, weights, is_normalised):
    mass = laws.spread(episodes, returns, weights, grid, len(found))
    return Estimate(name, grid, mass, is_normalised, logs)

  def normalised(name, logs):  # a common factor does not matter
    return weighted(name, logs, laws.relative(logs), True)

  rows = np.concatenate(
    [np.full(2 * len(path.weights) + 1, n) for n, path in enumerate(found)]
  )
  values = np.concatenate(
    [[0.0, *path.partial[1:], *path.partial[:-1]] for path in found]
  )
  signed = np.concatenate(
    [[1.0, *path.weights, *-path.weights] for path in found]
  )
  mass = laws.spread(rows, values, signed, grid, len(found))
  return [
    weighted(ORDINARY, logs, np.exp(np.minimum(logs, _LARGEST)), False),
    Estimate(PER_DECISION, grid, mass, log_weights=logs),
    normalised(NORMALISED, logs),
    normalised(CLIPPED, np.minimum(logs, np.log(clip))),
  ]


def fitted(
  data: DataSet, policy: blocks.Probabilities, returns: Returns, grid
) -> Estimate:
  """The fitted law at each episode's first state, over the policy's actions.

  Args:
    data: the episodes.
    policy: raw observations -> probabilities.
    returns: raw observations -> the fitted distributions.
    grid: [K].

  Returns:
    The estimate; each episode adds the law of its first state.
  """
  mass = np.zeros([len(data), len(grid)])
  for numbers, episodes in _groups(data, lambda episode: 1):
    seen = np.stack([episode.observations[0] for episode in episodes])
    values, weights = _mixture(seen, policy, returns)
    rows = np.repeat(np.arange(len(seen)), values.shape[1])
    mass[numbers] = laws.spread(
      rows, values.ravel(), weights.ravel(), grid, len(seen)
    )
  return Estimate(FITTED, grid, mass)


def by_neighbours(
  data: DataSet, policy: blocks.Probabilities, scale: blocks.Scale, gamma, grid
) -> Estimate:
  """The neighbours' law at each episode's first state."""
  episodes = list(data.read(range(len(data))))
  model = neighbours.fit(blocks.load(episodes, policy, scale), gamma=gamma)
  seen = np.stack([episode.observations[0] for episode in episodes])
  chances = blocks.ask(policy, seen)
  return Estimate(NEIGHBOURS, grid, model.on_grid(scale(seen), chances, grid))


def doubly_robust(
  data: DataSet,
  policy: blocks.Probabilities,
  returns: Returns,
  found: Sequence[Path],
  gamma: float,
  grid: np.ndarray,
) -> Estimate:
  """The fitted law, corrected by what the episodes say against it."""
  mass = fitted(data, policy, returns, grid).mass
  for numbers, episodes in _groups(data, lambda episode: len(episode.actions)):
    lengths = [len(episode.actions) for episode in episodes]
    rows = np.repeat(np.arange(len(episodes)), lengths)
    times = np.concatenate([np.arange(length) for length in lengths])
    actions = np.concatenate([episode.actions for episode in episodes])
    seen = np.concatenate([episode.observations for episode in episodes])
    after = np.concatenate([each.next_observations for each in episodes])
    rho = np.concatenate([found[number].weights for number in numbers])
    before = np.concatenate([found[number].partial[:-1] for number in numbers])
    then = np.concatenate([found[number].partial[1:] for number in numbers])
    goes_on = np.ones([len(actions)])
    for end, episode in zip(np.cumsum(lengths), episodes):
      goes_on[end - 1] = not episode.terminated
    values, weights = returns(seen)
    index = np.arange(len(actions))
    values, weights = values[index, actions], weights[index, actions]
    minus = before[:, None] + (gamma**times)[:, None] * values
    mass[numbers] -= _spread(rows, minus, rho, weights, grid, len(episodes))
    values, weights = _mixture(after, policy, returns)
    discount = (goes_on * gamma ** (times + 1))[:, None]
    plus = then[:, None] + discount * values
    mass[numbers] += _spread(rows, plus, rho, weights, grid, len(episodes))
  logs = np.array([path.logs[-1] for path in found])
  return Estimate(ROBUST, grid, mass, log_weights=logs)


def _spread(rows, values, rho, weights, grid, count) -> np.ndarray:
  return laws.spread(
    np.repeat(rows, values.shape[1]),
    values.ravel(),
    (rho[:, None] * weights).ravel(),
    grid,
    count,
  )


def _mixture(seen, policy, returns) -> Tuple[np.ndarray, np.ndarray]:
  """Values and weights, each [B, A N], of the policy's return."""
  values, weights = returns(seen)
  chances = blocks.ask(policy, seen)
  mixed = chances[..., None] * weights
  flat = (len(seen), -1)
  return values.reshape(flat).astype(np.float64), mixed.reshape(flat)


def _groups(
  data: DataSet, size: Callable[[Episode], int]
) -> Iterator[Tuple[List[int], List[Episode]]]:
  """Episodes together, whose sizes add up to a few thousand."""
  numbers: List[int] = []
  episodes: List[Episode] = []
  total = 0
  for number, episode in enumerate(data.read(range(len(data)))):
    if size(episode) == 1:  # only the first state matters
      episode = episode._replace(
        observations=episode.observations[:1].copy(),
        next_observations=episode.next_observations[:1].copy(),
      )
    numbers.append(number)
    episodes.append(episode)
    total += size(episode)
    if total >= _GROUP:
      yield numbers, episodes
      numbers, episodes, total = [], [], 0
  if numbers:
    yield numbers, episodes
