"""How far a kernel pulls, and which particles are farther away than that.

A particle x moves towards a target y by the pull |dk(x, y) / dx|. Bounded
kernels pull at a distance of about their bandwidth, and no more beyond: a
particle that is out of reach of all its targets does not learn from them.
"""

import math
from typing import Callable, NamedTuple, Optional, Sequence, Union

import numpy as np
import tensorflow as tf

# A pull below this share of the largest one counts as none.
SHARE = 0.01
# The grid of distances goes from the shortest length over this number to the
# longest length times it, where nothing is left: exp(-64) of each term.
_BEYOND = 64.0
_POINTS_PER_FOLD = 64  # grid points while the distance grows e times
_ZOOM = 257  # points between two neighbours of the grid's largest pull
_BISECTIONS = 60


class Decay(NamedTuple):
  """One term `size * exp(-(d / length)^power)` of a kernel that fades.

  Attributes:
    size: its value at distance 0; not negative.
    length: the distance where it is 1/e of that.
    power: 2 for a Gaussian, 1 for Laplace.
  """

  size: float
  length: float
  power: float

  @property
  def limit(self) -> float:
    """Its pull far away."""
    return 0.0

  def pull(self, distance: np.ndarray) -> np.ndarray:
    """|d/dd| of it, at distances of any shape."""
    ratio = distance / self.length
    steep = self.power / self.length * ratio ** (self.power - 1)
    return self.size * steep * np.exp(-(ratio**self.power))


class Tail(NamedTuple):
  """One term of a kernel whose pull rises from 0 and stays.

  Attributes:
    size: its pull far away; not negative.
    length: the distance at which it has risen.
    rise: distance over length -> share of the size, in [0, 1].
  """

  size: float
  length: float
  rise: Callable[[np.ndarray], np.ndarray]

  @property
  def limit(self) -> float:
    """Its pull far away."""
    return self.size

  def pull(self, distance: np.ndarray) -> np.ndarray:
    """|d/dd| of it, at distances of any shape."""
    return self.size * self.rise(distance / self.length)


Term = Union[Decay, Tail]


def of_terms(terms: Sequence[Term]) -> float:
  """The distance beyond which a sum of terms pulls with less than 1 %.

  Args:
    terms: not all of size 0.

  Returns:
    The largest distance at which the pull is at least `SHARE` of the largest
    pull over all distances; computed in float64 to about 1e-6 of itself.
    Infinite if the pull of tails is that large.
  """
  terms = [term for term in terms if term.size > 0]
  limit = sum(term.limit for term in terms)

  def pull(distance):  # all terms pull the same way
    return sum(term.pull(distance) for term in terms)

  lengths = [term.length for term in terms]
  near, far = min(lengths) / _BEYOND, max(lengths) * _BEYOND
  num_points = math.ceil(_POINTS_PER_FOLD * math.log(far / near))
  # Distance 0 stands for the limit: there Laplace's pull is the largest.
  distances = np.concatenate([[0.0], np.geomspace(near, far, num_points)])
  pulls = pull(distances)
  peak = int(np.argmax(pulls))
  around = distances[max(peak - 1, 0)], distances[min(peak + 1, num_points)]
  largest = max(pulls[peak], np.max(pull(np.linspace(*around, _ZOOM))), limit)
  enough = SHARE * largest
  if limit >= enough:
    return math.inf
  last = int(np.flatnonzero(pulls >= enough)[-1])
  low, high = distances[last], distances[last + 1]
  for _ in range(_BISECTIONS):
    middle = (low + high) / 2
    low, high = (middle, high) if pull(middle) >= enough else (low, middle)
  return float(low)


def share_beyond(
  x: tf.Tensor,
  y: tf.Tensor,
  reach: Union[float, tf.Tensor],
  *,
  x_weights: Optional[tf.Tensor] = None,
  y_weights: Optional[tf.Tensor] = None,
) -> tf.Tensor:
  """The share of the particles x that are out of reach of every particle y.

  On the line the nearest particle of y is one of two neighbours in sorted
  order, so no [B, N, M] tensor is formed. No gradient flows.

  Args:
    x: [B, N] particles, or [B, N, D].
    y: [B, M] particles, M > 0, or [B, M, D].
    reach: distance, [] or [B, 1]; a particle at this very distance is within.
    x_weights: [B, N] weights that are not negative, normalised here; uniform
      if None.
    y_weights: [B, M] weights; particles of weight 0 do not count.

  Returns:
    [B] shares in [0, 1], in the dtype of x. All are 0 for an infinite reach.
    Particles that are not a number count as within reach.
  """
  x = tf.stop_gradient(tf.convert_to_tensor(x))
  y = tf.stop_gradient(tf.cast(y, x.dtype))
  if y_weights is not None:
    there = y_weights > 0
    there = there[..., tf.newaxis] if y.shape.rank == 3 else there
    y = tf.where(there, y, tf.constant(math.inf, x.dtype))
  nearest = _nearest_vector if x.shape.rank == 3 else _nearest
  beyond = nearest(x, y) > tf.cast(reach, x.dtype)
  if x_weights is None:
    return tf.reduce_mean(tf.cast(beyond, x.dtype), axis=1)
  x_weights = tf.stop_gradient(tf.cast(x_weights, x.dtype))
  lost = tf.reduce_sum(tf.where(beyond, x_weights, 0), axis=1)
  return tf.math.divide_no_nan(lost, tf.reduce_sum(x_weights, axis=1))


def _nearest(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """[B, N] distances of numbers x to the nearest of y."""
  y = tf.sort(y, axis=1)
  above = tf.searchsorted(y, x)  # the first that is not below x
  last = tf.shape(y)[1] - 1
  neighbours = tf.maximum(above - 1, 0), tf.minimum(above, last)
  below, above = (
    tf.abs(x - tf.gather(y, place, axis=1, batch_dims=1))
    for place in neighbours
  )
  return tf.minimum(below, above)


def _nearest_vector(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """[B, N] distances of vectors x to the nearest of y."""
  squares = sum(
    tf.math.squared_difference(a[:, :, tf.newaxis], b[:, tf.newaxis])
    for a, b in zip(tf.unstack(x, axis=2), tf.unstack(y, axis=2))
  )
  return tf.sqrt(tf.reduce_min(squares, axis=2))
