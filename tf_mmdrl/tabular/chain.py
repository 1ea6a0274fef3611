"""The chain of the paper's tabular experiment, its rollouts and its episodes.

The chain of length K has the states s_0 ... s_{K-1}. Under the optimal policy
(always forward) a step moves one to the right with probability 0.9 and back to
s_0 otherwise; entering s_0 pays -1, reaching s_{K-1} pays 1 and ends. K = 1 is
degenerate: the start is the end, nothing ever happens and the return is 0.
"""

import dataclasses

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.tabular import process as process_lib


@dataclasses.dataclass(frozen=True)
class Chain:
  """The chain MDP under its optimal policy.

  Attributes:
    length: K, the number of states with the terminal one.
    gamma: the discount factor.
    forward: the probability that a step succeeds.
  """

  length: int
  gamma: float = 0.9
  forward: float = 0.9

  def __post_init__(self):
    if self.length < 1:
      raise errors.UserError(
        f"the chain length K must be at least 1, got {self.length}"
      )
    if not 0 <= self.gamma <= 1:
      raise errors.UserError(f"gamma must lie in [0, 1], got {self.gamma}")

  @property
  def steps(self) -> int:
    """K - 1: successes in a row that end an episode; states with a future."""
    return self.length - 1

  def process(self) -> process_lib.RewardProcess:
    """The chain as a reward process over the states s_0 ... s_{K-2}."""
    if not self.steps:
      raise errors.UserError("a chain of length 1 has no transitions")
    state = np.arange(self.steps)
    ends = state == self.steps - 1
    forward = np.full(self.steps, self.forward)
    return process_lib.RewardProcess(
      probabilities=np.stack([forward, 1 - forward], -1),
      rewards=np.stack(
        [np.where(ends, 1.0, 0.0), np.full(self.steps, -1.0)], -1
      ),
      successors=np.stack([np.where(ends, 0, state + 1), 0 * state], -1),
      discounts=np.stack(
        [np.where(ends, 0.0, self.gamma), np.full(self.steps, self.gamma)], -1
      ),
    )

  def exact_moments(self, order: int) -> np.ndarray:
    """[order]: the mean and central moments of the return from s_0."""
    if not self.steps:
      return np.zeros(order)
    raw = process_lib.raw_moments(self.process(), order)
    return process_lib.central_from_raw(raw)[:, 0]


def rollouts(
  chain: Chain, count: int, generator: np.random.Generator
) -> np.ndarray:
  """Plays `count` episodes from s_0, all at once, an attempt at a time.

  An attempt is what happens until the first failure or the end of the chain.

  Args:
    chain: the chain.
    count: how many.
    generator: the source of randomness.

  Returns:
    [count] Monte Carlo returns.
  """
  returns = np.zeros(count)
  if not chain.steps:
    return returns
  # P(at least i successes in a row) = forward^i: one draw gives their number.
  falling = -(chain.forward ** np.arange(1, chain.steps + 1))
  powers = chain.gamma ** np.arange(chain.steps + 1)
  running, discount = np.arange(count), np.ones(count)
  while running.size:
    successes = np.searchsorted(falling, -generator.random(running.size))
    ends = successes == chain.steps
    last = discount * powers[successes - ends]  # discounts the last reward
    returns[running] += np.where(ends, last, -last)
    running, discount = running[~ends], last[~ends] * chain.gamma
  return returns


@dataclasses.dataclass(frozen=True)
class Episodes:
  """The transitions of one run of episodes, in order.

  Attributes:
    state: [T].
    successor: [T]; s_0 where the episode ends.
    reward: [T].
    ends: [T] booleans.
    episode: [T] the episode each transition belongs to, from 0.
  """

  state: np.ndarray
  successor: np.ndarray
  reward: np.ndarray
  ends: np.ndarray
  episode: np.ndarray


def episodes(
  chain: Chain, count: int, generator: np.random.Generator
) -> Episodes:
  """Plays `count` episodes.

  An episode ends after K - 1 successes in a row and the next begins at s_0, so
  the state is the number of successes since the last failure modulo K - 1:
  no loop over the steps is needed.
  """
  success = np.zeros(0, bool)
  while True:
    block = 64 + 2 * max(count, success.size)
    success = np.append(success, generator.random(block) < chain.forward)
    time = np.arange(success.size)
    failed = np.where(success, -1, time)
    before = np.append(-1, np.maximum.accumulate(failed)[:-1])
    state = (time - before - 1) % chain.steps
    ends = success & (state == chain.steps - 1)
    ended = np.cumsum(ends)
    if ended[-1] >= count:
      break
  keep = np.searchsorted(ended, count) + 1
  success, state, ends = success[:keep], state[:keep], ends[:keep]
  return Episodes(
    state=state,
    successor=np.where(success & ~ends, state + 1, 0),
    reward=ends - 1.0 * ~success,
    ends=ends,
    episode=ended[:keep] - ends,
  )
