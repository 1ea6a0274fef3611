"""Transitions in memory, block by block, with the policy's probabilities.

A data set that fits the budget is one block, read once. A larger one is dealt
to blocks anew in every pass, in an order that depends on the seed and the pass
alone, so that a run that goes on reads what one that was not cut would read.
"""

from typing import (
  Callable,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np

from tf_mmdrl.offline import dataset
from tf_mmdrl.offline.dataset import DataSet, Episode

Probabilities = Callable[[np.ndarray], np.ndarray]
_CHUNK = 4096  # observations that a policy is asked about at once
_MADE = 2**26  # bytes of batches that are made at a time
_FEWEST = 10  # episodes, from which on some are held out


class Block(NamedTuple):
  """T transitions.

  Attributes:
    observations: [T, ...], scaled.
    actions: [T] int32.
    rewards: [T] or [T, D] float32.
    discounts: [T] float32, 0 where the episode ended.
    next_observations: [T, ...], scaled.
    next_probabilities: [T, A] float32, of the policy that is evaluated.
    weights: [T] float32, how often each counts.
  """

  observations: np.ndarray
  actions: np.ndarray
  rewards: np.ndarray
  discounts: np.ndarray
  next_observations: np.ndarray
  next_probabilities: np.ndarray
  weights: np.ndarray

  def take(self, rows: np.ndarray) -> "Block":
    """Some of the transitions, in the shape of `rows`."""
    return Block(*(part[rows] for part in self))


class Scale(NamedTuple):
  """Makes features of observations comparable; pictures stay as they are.

  Attributes:
    mean: [...] of each feature; None for pictures.
    deviation: [...] of each feature, 1 where it does not change.
  """

  mean: Optional[np.ndarray] = None
  deviation: Optional[np.ndarray] = None

  def __call__(self, observations: np.ndarray) -> np.ndarray:
    """Scaled observations [B, ...], float32 if they were floats."""
    if self.mean is None or self.deviation is None:
      return observations
    scaled = observations.astype(np.float32)
    scaled -= self.mean.astype(np.float32)
    scaled /= self.deviation.astype(np.float32)
    return scaled


class Moments:
  """Sums over observations, from which their scale comes."""

  def __init__(self, description: dataset.Description):
    """Counts nothing yet."""
    self._is_float = description.observation_dtype.kind == "f"
    shape = description.observation_shape
    self._count, self._sum, self._squares = 0, np.zeros(shape), np.zeros(shape)

  def add(self, observations: np.ndarray) -> None:
    """Takes [T, ...] observations; pictures stay as they are."""
    if self._is_float:
      seen = observations.astype(np.float64)
      self._count += len(seen)
      self._sum = self._sum + seen.sum(axis=0)
      self._squares = self._squares + (seen**2).sum(axis=0)

  def scale(self) -> Scale:
    """The mean and deviation of each feature."""
    if not self._is_float:
      return Scale()
    mean = self._sum / self._count
    variance = self._squares / self._count - mean**2
    deviation = np.sqrt(np.maximum(variance, 0))
    return Scale(mean, np.where(deviation > 1e-6, deviation, 1.0))


def scale_of(data: DataSet) -> Scale:
  """The scale of a data set's features, by one pass over it."""
  moments = Moments(data.description)
  for episode in data.read(range(len(data))):
    moments.add(episode.observations)
  return moments.scale()


def ask(policy: Probabilities, observations: np.ndarray) -> np.ndarray:
  """[T, A] probabilities, asked for in parts."""
  parts = range(0, len(observations), _CHUNK)
  return np.concatenate(
    [policy(observations[start : start + _CHUNK]) for start in parts]
  )


def load(
  episodes: Sequence[Episode],
  policy: Probabilities,
  scale: Scale,
  weights: Optional[Sequence[float]] = None,
) -> Block:
  """The transitions of some episodes.

  Args:
    episodes: their steps.
    policy: raw observations [B, ...] -> probabilities [B, A].
    scale: of observations.
    weights: how often each episode counts; once each if None.

  Returns:
    The block.
  """
  after = np.concatenate([episode.next_observations for episode in episodes])
  lengths = [len(episode.actions) for episode in episodes]
  discounts = np.ones([sum(lengths)], np.float32)
  for end, episode in zip(np.cumsum(lengths), episodes):
    if episode.terminated:
      discounts[end - 1] = 0
  return Block(
    scale(np.concatenate([episode.observations for episode in episodes])),
    np.concatenate([episode.actions for episode in episodes]).astype(np.int32),
    np.concatenate([episode.rewards for episode in episodes]),
    discounts,
    scale(after),
    ask(policy, after).astype(np.float32),
    np.repeat(
      np.ones(len(episodes)) if weights is None else weights, lengths
    ).astype(np.float32),
  )


class Source:
  """Blocks of a data set, by the number of the pass over it.

  Attributes:
    held_out: transitions that are not learnt from; some that are, if there are
      too few episodes to hold any out.
    is_held_out: whether they are.
  """

  def __init__(
    self,
    data: DataSet,
    policy: Probabilities,
    scale: Scale,
    *,
    budget: int,
    seed: int,
    held_out: float = 0.1,
    weights: Optional[np.ndarray] = None,
  ):
    """Reads what is held out.

    Args:
      data: the episodes.
      policy: whose probabilities stand beside next states.
      scale: of observations.
      budget: bytes of memory that transitions may take. While a block is made
        its episodes, their concatenation and its scaled form are there at the
        same time, so a block has a quarter of it, and what is held out an
        eighth.
      seed: decides what is held out, and the order of blocks.
      held_out: the share of episodes to hold out.
      weights: [E] how often each episode counts; once if None. One of weight 0
        is not read.
    """
    self._data, self._policy, self._scale = data, policy, scale
    self._seed, self._weights = seed, weights
    self._budget = budget // 4
    order = np.random.default_rng([seed, 0]).permutation(len(data))
    count = int(np.ceil(held_out * len(data)))
    self.is_held_out = bool(count) and len(data) >= _FEWEST
    first = order[: count if self.is_held_out else len(data)]
    kept = dataset.blocks(data, budget // 8, first.tolist())[0]
    self.held_out = load(list(data.read(sorted(kept))), policy, scale)
    self._learnt = order[count:] if self.is_held_out else order
    if weights is not None:
      counted = [index for index in self._learnt if weights[index] > 0]
      self._learnt = np.array(counted)
    self._at: Tuple[int, int] = (-1, -1)
    self._block: Optional[Block] = None
    self._parts: List[List[int]] = []

  @property
  def num_blocks(self) -> int:
    """Of the first pass."""
    return len(self._deal(0))

  def block(self, number: int) -> Block:
    """Block `number` of all passes in a row, from 0."""
    epoch, passed = 0, 0
    while passed + len(self._deal(epoch)) <= number:
      passed += len(self._deal(epoch))
      epoch += 1
      if self._is_whole():
        return self._load(0, 0)
    return self._load(epoch, number - passed)

  def _is_whole(self) -> bool:
    return len(self._deal(0)) == 1

  def _deal(self, epoch: int) -> List[List[int]]:
    if self._at[0] != epoch:
      generator = np.random.default_rng([self._seed, 1, epoch])
      order = generator.permutation(self._learnt).tolist()
      self._parts = dataset.blocks(self._data, self._budget, order)
      self._at, self._block = (epoch, -1), None
    return self._parts

  def _load(self, epoch: int, part: int) -> Block:
    indices = sorted(self._deal(epoch)[part])
    if self._at != (epoch, part) or self._block is None:
      self._block = None  # before the next one needs room
      weights = None
      if self._weights is not None:
        weights = [float(self._weights[index]) for index in indices]
      self._block = load(
        list(self._data.read(indices)), self._policy, self._scale, weights
      )
      self._at = (epoch, part)
    return self._block


def batches(
  source: Source,
  number: int,
  *,
  count: int,
  size: int,
  seed: int,
  step_bytes: int,
) -> Iterator[Block]:
  """Transitions of a block, drawn by the seed and its number alone.

  Args:
    source: of blocks.
    number: of the block.
    count: K, how many batches.
    size: B; if a block has no more transitions, each batch is all of them.
    seed: of the draws.
    step_bytes: of a transition, which decide how many batches are made at a
      time.

  Yields:
    [k, B] transitions, for the same k each time, K in all.
  """
  block = source.block(number)
  generator = np.random.default_rng([seed, 2, number])
  rows = generator.integers(len(block.actions), size=[count, size])
  if len(block.actions) <= size:
    everything = np.arange(len(block.actions))
    rows = np.broadcast_to(everything, [count, len(everything)])
  most = max(1, _MADE // (rows.shape[1] * step_bytes))
  each = max(k for k in range(1, count + 1) if k <= most and count % k == 0)
  for start in range(0, count, each):
    yield block.take(rows[start : start + each])
