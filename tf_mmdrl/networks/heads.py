"""Heads: from features to the return distribution of each action.

A head is described by a function that makes its layer, because TF-Agents copies
a network by building it again: `heads.particles(200)` and its neighbours give
such functions. The layer maps features [B, F] to a `ReturnDistribution` of
[B, A, N], or a joint one of [B, A, N, D], in units of return; `changes(factor)`
says how its weights change so that the values become `factor` times what they
were.
"""

from typing import Callable, List, Optional

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.networks import streams
from tf_mmdrl.ops import categorical as categorical_ops

# (width of each action, **options) -> the layers that end a network.
MakeStream = Callable[..., streams.ActionStream]
MakeHead = Callable[[MakeStream], tf.keras.layers.Layer]


def particles(
  num_particles: int = 200, dimensions: Optional[int] = None
) -> MakeHead:
  """N free particles of equal weight: MMDQN, QR-DQN; with N = 1, DQN.

  Args:
    num_particles: N.
    dimensions: D, for particles that are vectors of D returns.

  Returns:
    What makes the head.
  """
  check_count("num_particles", num_particles, 1)
  check_count("dimensions", 1 if dimensions is None else dimensions, 1)
  return lambda make_stream: _Particles(make_stream, num_particles, dimensions)


def weighted_particles(
  num_particles: int = 200, dimensions: Optional[int] = None
) -> MakeHead:
  """N free particles, and their weights; see `particles`."""
  check_count("num_particles", num_particles, 1)
  check_count("dimensions", 1 if dimensions is None else dimensions, 1)
  return lambda make_stream: _WeightedParticles(
    make_stream, num_particles, dimensions
  )


def categorical(
  num_atoms: int = 51, v_min: float = -10.0, v_max: float = 10.0
) -> MakeHead:
  """Weights of an even grid of returns from v_min to v_max: C51."""
  check_count("num_atoms", num_atoms, 2)
  if not v_min < v_max:
    raise errors.UserError(
      f"v_min must be below v_max, got {v_min} and {v_max}"
    )
  return lambda make_stream: _Categorical(make_stream, num_atoms, v_min, v_max)


def check_count(name: str, count: int, least: int) -> None:
  """Raises unless a count of that name is large enough."""
  if count < least:
    raise errors.UserError(f"{name} must be at least {least}, got {count}")


class _Particles(tf.keras.layers.Layer):
  def __init__(
    self, make_stream: MakeStream, num_particles: int, dimensions: Optional[int]
  ):
    super().__init__(name="particles")
    self.num_particles = num_particles
    self.dimensions = dimensions
    # Noise of each particle's own would average out in the mean, and the noise
    # is there to explore.
    self._stream = make_stream(
      num_particles * (dimensions or 1), share_noise=True
    )

  def call(self, features, training=False, seed: Optional[tf.Tensor] = None):
    outputs = self._stream(features, training=training, seed=seed)
    return _distribution(outputs, self.dimensions)

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    factor = _of_each(factor, self.num_particles, self.dimensions)
    return self._stream.changes(lambda values: factor * values)


class _WeightedParticles(tf.keras.layers.Layer):
  def __init__(
    self, make_stream: MakeStream, num_particles: int, dimensions: Optional[int]
  ):
    super().__init__(name="weighted_particles")
    self.num_particles = num_particles
    self.dimensions = dimensions
    self._num_values = num_particles * (dimensions or 1)
    self._stream = make_stream(
      self._num_values + num_particles, share_noise=True
    )

  def call(self, features, training=False, seed: Optional[tf.Tensor] = None):
    outputs = self._stream(features, training=training, seed=seed)
    sizes = [self._num_values, self.num_particles]
    values, logits = tf.split(outputs, sizes, axis=-1)
    distribution = _distribution(values, self.dimensions)
    return distribution._replace(log_weights=tf.nn.log_softmax(logits))

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    factor = _of_each(factor, self.num_particles, self.dimensions)
    factor = tf.broadcast_to(factor, [self._num_values])
    factor = tf.concat([factor, tf.ones([self.num_particles])], axis=0)
    return self._stream.changes(lambda outputs: factor * outputs)


def _distribution(
  values: tf.Tensor, dimensions: Optional[int]
) -> ReturnDistribution:
  """Particles [B, A, N], or vectors of the numbers [B, A, N * D]."""
  if dimensions is None:
    return ReturnDistribution(values)
  shape = tf.concat([tf.shape(values)[:-1], [-1, dimensions]], axis=0)
  static = [*values.shape[:-1], values.shape[-1] // dimensions, dimensions]
  vectors = tf.ensure_shape(tf.reshape(values, shape), static)
  return JointReturnDistribution(vectors)


def _of_each(
  factor: tf.Tensor, num_particles: int, dimensions: Optional[int]
) -> tf.Tensor:
  """[] factor of particles, or [D] ones of vectors as [N * D]."""
  return factor if dimensions is None else tf.tile(factor, [num_particles])


class _Categorical(tf.keras.layers.Layer):
  def __init__(self, make_stream: MakeStream, num_atoms, v_min, v_max):
    super().__init__(name="categorical")
    self.num_particles = num_atoms
    self.support = (v_min, v_max)
    self._stream = make_stream(num_atoms)

  def call(self, features, training=False, seed: Optional[tf.Tensor] = None):
    logits = self._stream(features, training=training, seed=seed)
    atoms = tf.linspace(*map(tf.constant, self.support), self.num_particles)
    values = tf.zeros_like(logits) + atoms
    return ReturnDistribution(values, tf.nn.log_softmax(logits))

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    matrix, shift = categorical_ops.resample(
      self.num_particles, *self.support, factor
    )
    return self._stream.changes(
      lambda logits: tf.linalg.matmul(logits, matrix), shift
    )
