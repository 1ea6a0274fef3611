"""Finite decision processes as data sets, and their exact returns."""

import dataclasses

import numpy as np

from tf_mmdrl import tabular
from tf_mmdrl.offline.dataset import DataSet, Description, Episode


class Memory(DataSet):
  """Episodes in memory."""

  def __init__(self, episodes, description, path="memory"):
    self.episodes, self.description, self.path = episodes, description, path
    self.lengths = np.array([len(each.actions) for each in episodes])
    self.has_behaviour = episodes[0].behaviour is not None

  def read(self, indices):
    for index in indices:
      yield self.episodes[index]


@dataclasses.dataclass
class Finite:
  """S states, A actions, J outcomes; states are one-hot observations.

  Attributes:
    counts: [S, A, J] how often each outcome occurs in the data.
    rewards: [S, A, J].
    successors: [S, A, J].
    ends: [S, A, J] whether the episode ends.
    policy: [S, A] probabilities.
  """

  counts: np.ndarray
  rewards: np.ndarray
  successors: np.ndarray
  ends: np.ndarray
  policy: np.ndarray

  def transitions(self):
    """Every outcome once, as one step, and how often each counts."""
    one_hot = np.eye(len(self.policy), dtype=np.float32)
    episodes, weights = [], []
    for (s, a, j), count in np.ndenumerate(self.counts):
      episodes.append(
        Episode(
          one_hot[s][None],
          np.array([a]),
          np.float32([self.rewards[s, a, j]]),
          one_hot[self.successors[s, a, j]][None],
          bool(self.ends[s, a, j]),
        )
      )
      weights.append(count)
    states, actions = self.policy.shape
    data = Memory(
      episodes, Description((states,), np.dtype(np.float32), actions)
    )
    return data, np.array(weights) / np.mean(weights)

  def probabilities(self, observations):
    """The policy's, of one-hot observations."""
    return self.policy[np.argmax(observations, axis=1)]

  def exact(self, gamma):
    """Values and weights, each [S, A, K], of the exact returns."""
    states, actions, outcomes = self.counts.shape
    shape = (states * actions, outcomes * actions)
    share = self.counts / self.counts.sum(-1, keepdims=True)
    chances = share[..., None] * self.policy[self.successors]
    rewards = np.broadcast_to(self.rewards[..., None], chances.shape)
    after = self.successors[..., None] * actions + np.arange(actions)
    goes_on = np.broadcast_to(~self.ends[..., None], chances.shape)
    process = tabular.RewardProcess(
      chances.reshape(shape),
      rewards.reshape(shape),
      after.reshape(shape),
      gamma * goes_on.reshape(shape).astype(float),
    )
    values, weights = tabular.fixed_point(process, atoms=801, tolerance=1e-7)
    return tuple(
      part.reshape([states, actions, -1]) for part in (values, weights)
    )


def random(seed, states=4, actions=2, outcomes=2):
  """A random process whose probabilities are multiples of 1/20."""
  rng = np.random.default_rng(seed)
  shape = (states, actions, outcomes)
  even = np.ones(outcomes) / outcomes
  return Finite(
    rng.multinomial(20 - outcomes, even, shape[:2]) + 1,
    rng.normal(size=shape).round(1),
    rng.integers(states, size=shape),
    rng.random(shape) < 0.2,
    rng.dirichlet(np.ones(actions), states),
  )


def chain(length=4):
  """The paper's chain: forward with 0.9, else back to the first state."""
  states = np.arange(length)
  forward = np.minimum(states + 1, length - 1)
  return Finite(
    np.tile([[[9, 1]]], [length, 1, 1]),
    np.stack([np.where(states == length - 1, 1.0, 0.0), 0 * states - 1.0], -1)[
      :, None
    ],
    np.stack([forward, 0 * states], -1)[:, None],
    np.stack([states == length - 1, states < 0], -1)[:, None],
    np.ones([length, 1]),
  )
