"""A data set, and what one pass over it finds."""

import dataclasses
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.offline import blocks, dataset, importance
from tf_mmdrl.offline.dataset import DataSet, Episode

_FIRST = 2000  # first states that are kept


class Data(NamedTuple):
  """A data set, and what one pass over it found.

  Attributes:
    episodes: the data set.
    num_terminated: episodes that ended, and were not cut off.
    action_counts: [A] how often each action was taken.
    scale: of observations.
    returns: [E] or [E, D] discounted returns as they were logged.
    bounds: the lowest and highest partial return, each [] or [D].
    rewards: the lowest and highest reward, each [] or [D].
    first: [F, ...] observations that episodes begin with, of up to 2,000.
    seen: observations [S, ...] of a few episodes.
  """

  episodes: DataSet
  num_terminated: int
  action_counts: np.ndarray
  scale: blocks.Scale
  returns: np.ndarray
  bounds: Tuple[np.ndarray, np.ndarray]
  rewards: Tuple[np.ndarray, np.ndarray]
  first: np.ndarray
  seen: np.ndarray

  @property
  def dimensions(self) -> int:
    """D of vector rewards; 0 for plain numbers."""
    return self.episodes.description.reward_size

  def part(self, index: int) -> "Data":
    """The same with one of the rewards that are vectors."""
    low, high = self.bounds
    least, most = self.rewards
    return self._replace(
      episodes=_Part(self.episodes, index),
      returns=self.returns[:, index],
      bounds=(low[index], high[index]),
      rewards=(least[index], most[index]),
    )


class _Part(DataSet):
  """Episodes with one of their rewards."""

  def __init__(self, data: DataSet, index: int):
    self._data, self._index = data, index
    self.path, self.lengths = data.path, data.lengths
    self.has_behaviour = data.has_behaviour
    self.description = data.description._replace(reward_size=0)

  def read(self, indices: Sequence[int]) -> Iterator[Episode]:
    """Episodes by number; see the base class."""
    for episode in self._data.read(indices):
      yield episode._replace(rewards=episode.rewards[:, self._index])


@dataclasses.dataclass
class _Extremes:
  """The lowest and highest number so far, by column."""

  low: Optional[np.ndarray] = None
  high: Optional[np.ndarray] = None

  def add(self, numbers: np.ndarray) -> None:
    """Takes [T] or [T, D] numbers."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    self.low = low if self.low is None else np.minimum(self.low, low)
    self.high = high if self.high is None else np.maximum(self.high, high)

  def both(self) -> Tuple[np.ndarray, np.ndarray]:
    """Both, in float64."""
    return np.float64(self.low), np.float64(self.high)  # type: ignore


def open_data(episodes: DataSet, gamma: float, seen: int = 2000) -> Data:
  """Reads all of a data set once, so that what is bad in it shows at once.

  Args:
    episodes: the data set.
    gamma: discount of the returns.
    seen: how many observations to keep.

  Returns:
    What was found.
  """
  counts = np.zeros([episodes.description.num_actions], np.int64)
  moments = blocks.Moments(episodes.description)
  terminated, kept = 0, 0
  returns: List[np.ndarray] = []
  first: List[np.ndarray] = []
  some: List[np.ndarray] = []
  partial, rewards = _Extremes(), _Extremes()
  for episode in episodes.read(range(len(episodes))):
    counts += np.bincount(episode.actions, minlength=len(counts))
    terminated += episode.terminated
    moments.add(episode.observations)
    sums = importance.partial_returns(episode.rewards, gamma)
    returns.append(sums[-1])
    partial.add(sums)
    rewards.add(episode.rewards)
    if len(first) < _FIRST:
      first.append(episode.observations[0].copy())
    if kept < seen:
      some.append(episode.observations[: seen - kept].copy())
      kept += len(some[-1])
  if not returns:
    raise dataset.broken(episodes.path, "it has no episodes; log some")
  return Data(
    episodes,
    terminated,
    counts,
    moments.scale(),
    np.array(returns),
    partial.both(),
    rewards.both(),
    np.stack(first),
    np.concatenate(some),
  )
