"""How replay draws: all alike, or in proportion to priority.

A slot is a place in the rings flattened to `[B * L]`. The replay opens the
slots at which a sample may start and closes them when their step leaves.
"""

from typing import Any, Dict, Protocol, Tuple

import numpy as np

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay.sum_tree import SumTree

# A priority of zero would never be seen again (the epsilon of Schaul et al.).
_LEAST_PRIORITY = 1e-6
# Below this share of open slots, listing them is faster than trying at random.
_WORTH_TRYING = 1 / 8


class Sampler(Protocol):
  """Draws among the open slots."""

  num_open: int

  def open(self, slots: np.ndarray) -> None:
    """Opens [count] slots, none of them open yet."""

  def close(self, slots: np.ndarray) -> None:
    """Closes those of [count] slots that are open."""

  def draw(
    self, generator: np.random.Generator, shape: Tuple[int, int], filled: int
  ) -> Tuple[np.ndarray, np.ndarray]:
    """Draws `shape` = [K, B] slots, and the probability of each.

    Args:
      generator: the only source of randomness.
      shape: K batches of B draws.
      filled: only the first so many of an environment's slots were ever used.
    """

  def weights(self, probabilities: np.ndarray, beta: float) -> np.ndarray:
    """[K, B] importance weights of draws with these probabilities."""

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

  def draw(
    self, generator: np.random.Generator, shape: Tuple[int, int], filled: int
  ) -> Tuple[np.ndarray, np.ndarray]:
    """See `Sampler`."""
    if self.num_open < _WORTH_TRYING * filled * self._batch_size:
      slots = generator.choice(np.flatnonzero(self._open), shape)
    else:
      slots = self._try(generator, shape, filled)
      while not (hit := self._open[slots]).all():
        missed = ~hit
        count = np.count_nonzero(missed)
        slots[missed] = self._try(generator, count, filled)
    return slots, np.full(shape, 1 / self.num_open)

  def weights(self, probabilities: np.ndarray, beta: float) -> np.ndarray:
    """See `Sampler`."""
    del beta
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

  def _try(self, generator, shape, filled) -> np.ndarray:
    picks = generator.integers(self._batch_size * filled, size=shape)
    return picks // filled * self._max_length + picks % filled


class PrioritizedSampler:
  """Proportional prioritisation (Schaul et al., 2016).

  A slot is drawn with probability `p^alpha / sum p^alpha`; one that has just
  been opened has the largest priority seen so far.
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
    self._largest = 1.0  # p^alpha, as in the tree

  def open(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self._tree.set(slots, self._largest)
    self.num_open += slots.size

  def close(self, slots: np.ndarray) -> None:
    """See `Sampler`."""
    self.num_open -= np.count_nonzero(self._tree.leaves[slots])
    self._tree.set(slots, 0)

  def draw(
    self, generator: np.random.Generator, shape: Tuple[int, int], filled: int
  ) -> Tuple[np.ndarray, np.ndarray]:
    """See `Sampler`; one draw from each B-th of the mass (appendix B.2.1)."""
    del filled
    total = self._tree.total
    shares = (np.arange(shape[1]) + generator.random(shape)) / shape[1]
    slots, weights = self._tree.find(shares.reshape([-1]) * total)
    return slots.reshape(shape), weights.reshape(shape) / total

  def weights(self, probabilities: np.ndarray, beta: float) -> np.ndarray:
    """See `Sampler`; normalised by each batch's maximum (section 3.4)."""
    weights = (self.num_open * probabilities) ** -beta
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
    self._largest = max(self._largest, float(powers.max()))

  def state(self) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """See `Sampler`."""
    scalars = {
      "kind": "prioritized",
      "alpha": self._alpha,
      "largest": self._largest,
    }
    return scalars, {"weights": self._tree.leaves}

  def set_state(
    self, scalars: Dict[str, Any], tables: Dict[str, np.ndarray]
  ) -> None:
    """See `Sampler`."""
    self._largest = scalars["largest"]
    self._tree.set_all(tables["weights"])
    self.num_open = np.count_nonzero(self._tree.leaves)
