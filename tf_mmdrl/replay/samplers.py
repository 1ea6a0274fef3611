"""How replay draws: all alike, or in proportion to priority.

A slot is a place in the rings flattened to `[B * L]`. The replay opens the
slots at which a sample may start and closes them when their step leaves. A
replay may be one of several shards, each with a sampler of its own, which are
drawn from as if they were one.
"""

from typing import Any, Dict, NamedTuple, Protocol, Sequence, Tuple

import numpy as np

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay.shards import edges, owners, put_together
from tf_mmdrl.replay.sum_tree import SumTree

# A priority of zero would never be seen again (the epsilon of Schaul et al.).
_LEAST_PRIORITY = 1e-6
# Below this share of open slots, listing them is faster than trying at random.
_WORTH_TRYING = 1 / 8


class Found(NamedTuple):
  """What was drawn; each [K, B].

  Attributes:
    shards: the index of the sampler.
    slots: the slots of that sampler.
    probabilities: the probability of each draw.
  """

  shards: np.ndarray
  slots: np.ndarray
  probabilities: np.ndarray


class Sampler(Protocol):
  """Draws among the open slots."""

  num_open: int

  def open(self, slots: np.ndarray) -> None:
    """Opens [count] slots, none of them open yet."""

  def close(self, slots: np.ndarray) -> None:
    """Closes those of [count] slots that are open."""

  @staticmethod
  def draw(
    samplers: Sequence[Any],
    generator: np.random.Generator,
    shape: Tuple[int, int],
    filled: Sequence[int],
  ) -> Found:
    """Draws `shape` = [K, B] of all slots that are open.

    Args:
      samplers: samplers of this kind, one for each shard.
      generator: the only source of randomness.
      shape: K batches of B draws.
      filled: for each shard, only the first so many of an environment's slots
        were ever used.
    """

  @staticmethod
  def weights(
    probabilities: np.ndarray, num_open: int, beta: float
  ) -> np.ndarray:
    """[K, B] importance weights of draws among `num_open` slots."""

  def update(self, slots: np.ndarray, priorities: np.ndarray) -> None:
    """Sets the priorities of those of [count] slots that are open."""

  def state(self) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """What `set_state` needs: numbers and strings, and arrays."""

  def set_state(
    self, scalars: Dict[str, Any], tables: Dict[str, np.ndarray]
  ) -> None:
    """Goes on from `state`, after the same slots were opened."""


class UniformSampler:
  """Draws all open slots alike."""

  def __init__(self, batch_size: int, max_length: int):
    self.num_open = 0
    self._batch_size = batch_size
    self._max_length = max_length
    self._open = np.zeros([batch_size * max_length], bool)

  def open(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self._open[slots] = True
    self.num_open += slots.size

  def close(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self.num_open -= np.count_nonzero(self._open[slots])
    self._open[slots] = False

  @staticmethod
  def draw(
    samplers: Sequence["UniformSampler"],
    generator: np.random.Generator,
    shape: Tuple[int, int],
    filled: Sequence[int],
  ) -> Found:
    """See `Sampler`."""
    num_open = sum(sampler.num_open for sampler in samplers)
    bounds = edges(
      [s._batch_size * count for s, count in zip(samplers, filled)]
    )
    if num_open < _WORTH_TRYING * bounds[-1]:
      shards, slots = UniformSampler._list(
        samplers, generator.choice(num_open, shape)
      )
    else:

      def attempt(size):
        picks = generator.integers(int(bounds[-1]), size=size)
        return UniformSampler._try(samplers, picks, bounds, filled)

      shards, slots, hit = attempt(shape)
      while not hit.all():
        missed = ~hit
        again = attempt(np.count_nonzero(missed))
        shards[missed], slots[missed], hit[missed] = again
    return Found(shards, slots, np.full(shape, 1 / num_open))

  @staticmethod
  def weights(
    probabilities: np.ndarray, num_open: int, beta: float
  ) -> np.ndarray:
    """See `Sampler`."""
    del num_open, beta
    return np.ones(probabilities.shape, np.float32)

  def update(self, slots: np.ndarray, priorities: np.ndarray) -> None:
    """See `Sampler`."""
    raise UserError(
      "priorities need a prioritised replay, this one draws uniformly;"
      " pass sampler=PrioritizedSampler"
    )

  def state(self) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """See `Sampler`; which slots are open follows from the steps."""
    return {"kind": "uniform"}, {}

  def set_state(
    self, scalars: Dict[str, Any], tables: Dict[str, np.ndarray]
  ) -> None:
    """See `Sampler`."""

  @staticmethod
  def _list(
    samplers: Sequence["UniformSampler"], picks: np.ndarray
  ) -> Tuple[np.ndarray, np.ndarray]:
    """Shards and slots of picks, which are ranks among the open slots."""
    bounds = edges([sampler.num_open for sampler in samplers])
    listed = [np.flatnonzero(sampler._open) for sampler in samplers]
    return owners(bounds, picks), np.concatenate(listed)[picks]

  @staticmethod
  def _try(
    samplers: Sequence["UniformSampler"],
    picks: np.ndarray,
    bounds: np.ndarray,
    filled: Sequence[int],
  ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shards and slots of picks among those ever used, and which are open."""
    shards = owners(bounds, picks)

    def of_shard(index, where):
      sampler, inside = samplers[index], picks[where] - bounds[index]
      rows, places = np.divmod(inside, filled[index])
      slots = rows * sampler._max_length + places
      return slots, sampler._open[slots]

    slots, hit = put_together(shards, len(samplers), of_shard)
    return shards, slots, hit


class PrioritizedSampler:
  """Proportional prioritisation (Schaul et al., 2016).

  A slot is drawn with probability `p^alpha / sum p^alpha`; one that has just
  been opened has the largest priority seen so far.

  Attributes:
    largest: p^alpha of the largest priority seen so far, of all shards.
  """

  def __init__(self, batch_size: int, max_length: int, *, alpha: float = 0.6):
    """Creates the sampler.

    Args:
      batch_size: B.
      max_length: L.
      alpha: 0 draws uniformly, 1 in full proportion to the priorities.
    """
    if not 0 <= alpha <= 1:
      raise UserError(f"alpha must lie in [0, 1], got {alpha}; 0.6 is usual")
    self.num_open = 0
    self._alpha = alpha
    self._tree = SumTree(batch_size * max_length)
    self.largest = 1.0

  def open(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self._tree.set(slots, self.largest)
    self.num_open += slots.size

  def close(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self.num_open -= np.count_nonzero(self._tree.leaves[slots])
    self._tree.set(slots, 0)

  @staticmethod
  def draw(
    samplers: Sequence["PrioritizedSampler"],
    generator: np.random.Generator,
    shape: Tuple[int, int],
    filled: Sequence[int],
  ) -> Found:
    """See `Sampler`; one draw from each B-th of the mass (appendix B.2.1)."""
    del filled
    bounds = edges([sampler._tree.total for sampler in samplers])
    total = float(bounds[-1])
    shares = (np.arange(shape[1]) + generator.random(shape)) / shape[1]
    points = shares * total
    # Rounding may push a point past the end: back into the last shard.
    shards = owners(bounds, np.minimum(points, np.nextafter(total, 0)))

    def of_shard(index, where):
      inside = points[where] - bounds[index]
      found = samplers[index]._tree.find(inside.reshape([-1]))
      return [part.reshape(inside.shape) for part in found]

    slots, weights = put_together(shards, len(samplers), of_shard)
    return Found(shards, slots, weights / total)

  @staticmethod
  def weights(
    probabilities: np.ndarray, num_open: int, beta: float
  ) -> np.ndarray:
    """See `Sampler`; normalised by each batch's maximum (section 3.4)."""
    weights = (num_open * probabilities) ** -beta
    weights /= weights.max(axis=-1, keepdims=True)
    return weights.astype(np.float32)

  def update(self, slots: np.ndarray, priorities: np.ndarray) -> None:
    """See `Sampler`."""
    is_open = self._tree.leaves[slots] > 0
    if not is_open.any():
      return
    powers = np.maximum(priorities[is_open], _LEAST_PRIORITY) ** self._alpha
    powers = powers.astype(np.float32)
    self._tree.set(slots[is_open], powers)
    self.largest = max(self.largest, float(powers.max()))

  def state(self) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """See `Sampler`."""
    scalars = {
      "kind": "prioritized",
      "alpha": self._alpha,
      "largest": self.largest,
    }
    return scalars, {"weights": self._tree.leaves}

  def set_state(
    self, scalars: Dict[str, Any], tables: Dict[str, np.ndarray]
  ) -> None:
    """See `Sampler`."""
    self.largest = scalars["largest"]
    self._tree.set_all(tables["weights"])
    self.num_open = np.count_nonzero(self._tree.leaves)
