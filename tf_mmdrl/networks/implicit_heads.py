"""Heads that map a number to a return: IQN, implicit MMDQN, FQF.

Features are multiplied by an embedding of the number (Dabney et al., "Implicit
Quantile Networks", 2018, Section 3.1), so that any number of particles comes
from the same weights.
"""

import math
from typing import List, Optional, Tuple

import tensorflow as tf

from tf_mmdrl.core import draws, errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks import heads, streams

BASES = ("uniform", "normal")


def implicit(
  num_particles: int = 32,
  *,
  base: str = "uniform",
  embedding: int = 64,
  stratified: bool = False,
) -> heads.MakeHead:
  """Particles are the images of draws from a base distribution.

  Args:
    num_particles: how many, where a call does not say.
    base: "uniform" on (0, 1), through cosines as in IQN, or "normal", through
      a small layer of its own.
    embedding: n, numbers that a draw is embedded in before the features' size.
    stratified: whether the N draws come from N equal parts of the base, one
      from each, instead of independently. The MMD wants it: over independent
      draws its expectation has a term k(0) - E k(z, z') of order 1 / N, which
      would make the distribution narrower than the target's.

  Returns:
    What makes the head. Without a seed it takes even levels instead of draws:
    the midpoints of N equal parts of the base distribution.
  """
  heads.check_count("num_particles", num_particles, 1)
  heads.check_count("embedding", embedding, 1)
  if base not in BASES:
    raise errors.unknown_name("base", base, BASES)
  return lambda make_stream: _Implicit(
    make_stream, num_particles, base, embedding, stratified
  )


def fractions(
  num_fractions: int = 32, *, embedding: int = 64
) -> heads.MakeHead:
  """Quantiles at levels that the state proposes: FQF."""
  heads.check_count("num_fractions", num_fractions, 2)
  heads.check_count("embedding", embedding, 1)
  return lambda make_stream: _Fractions(make_stream, num_fractions, embedding)


class _Images(tf.keras.layers.Layer):
  """Features [B, F] and numbers [B, N] -> values [B, A, N]."""

  def __init__(self, make_stream: heads.MakeStream, cosines: bool, size: int):
    super().__init__(name="images")
    self._cosines = cosines
    self._size = size
    self._stream = make_stream(1)
    self._hidden = None
    if not cosines:
      self._hidden = tf.keras.layers.Dense(size, "relu", name="hidden")

  def build(self, input_shape):
    self._embed = tf.keras.layers.Dense(
      input_shape[-1], "relu", name="embedding"
    )
    super().build(input_shape)

  def call(self, features, numbers, training=False, seed=None):
    count = tf.shape(numbers)[1]
    embedded = self._embed(self._expand(numbers[..., tf.newaxis]))
    product = features[:, tf.newaxis] * tf.cast(embedded, features.dtype)
    flat = tf.reshape(product, [-1, features.shape[-1]])
    values = self._stream(flat, training=training, seed=seed)  # [B * N, A, 1]
    values = tf.reshape(values, [-1, count, values.shape[1]])
    values = tf.transpose(values, [0, 2, 1])
    values.set_shape([None, None, numbers.shape[1]])
    return values

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    return self._stream.changes(lambda values: factor * values)

  def _expand(self, numbers):
    """[B, N, n]: cos(pi i u), i = 0 .. n - 1 (IQN, equation 4)."""
    if self._hidden is not None:
      return self._hidden(numbers)
    return tf.cos(math.pi * tf.range(self._size, dtype=numbers.dtype) * numbers)


class _Implicit(tf.keras.layers.Layer):
  is_implicit = True

  def __init__(self, make_stream, num_particles, base, embedding, stratified):
    super().__init__(name="implicit")
    self.num_particles = num_particles
    self._base = base
    self.is_stratified = stratified
    self._images = _Images(make_stream, base == "uniform", embedding)

  def call(
    self,
    features,
    training=False,
    seed: Optional[tf.Tensor] = None,
    num_particles: Optional[int] = None,
    even_levels: bool = False,
  ):
    count = self.num_particles if num_particles is None else num_particles
    shape = [tf.shape(features)[0], count]
    levels = self._levels(shape, None if even_levels else seed)
    numbers = tf.math.ndtri(levels) if self._base == "normal" else levels
    values = self._images(features, numbers, training=training, seed=seed)
    levels = tf.zeros_like(values) + levels[:, tf.newaxis]
    return ReturnDistribution(values, levels=levels)

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    return self._images.changes(factor)

  def _levels(self, shape, seed: Optional[tf.Tensor]) -> tf.Tensor:
    """[B, N] in (0, 1)."""
    if seed is None:
      places = tf.fill(shape, 0.5)
    else:
      places = draws.uniform_by_row(shape, draws.fold(seed, 2))
      if not self.is_stratified:
        return places
    levels = (tf.range(shape[1], dtype=tf.float32) + places) / shape[1]
    return tf.minimum(levels, 1 - 2.0**-24)  # the sum may round to N


class _Fractions(tf.keras.layers.Layer):
  """FQF: Yang et al., "Fully Parameterized Quantile Function", 2019."""

  def __init__(self, make_stream, num_fractions, embedding):
    super().__init__(name="fractions")
    self.num_particles = num_fractions
    self._images = _Images(make_stream, True, embedding)
    self.proposal = tf.keras.layers.Dense(
      num_fractions,
      # Small, so that the first fractions are nearly even (paper, Appendix).
      kernel_initializer=tf.keras.initializers.VarianceScaling(0.01),
      dtype="float32",
      name="proposal",
    )

  def call(self, features, training=False, seed: Optional[tf.Tensor] = None):
    log_weights, edges = self.propose(features)
    middles = tf.stop_gradient(self.middles(edges))
    values = self._images(features, middles, training=training, seed=seed)
    zeros = tf.zeros_like(values)
    return ReturnDistribution(
      values,
      zeros + tf.stop_gradient(log_weights)[:, tf.newaxis],
      zeros + middles[:, tf.newaxis],
    )

  def changes(self, factor: tf.Tensor) -> List[streams.Change]:
    return self._images.changes(factor)

  def propose(self, features) -> Tuple[tf.Tensor, tf.Tensor]:
    """Log-weights [B, N] and fractions tau_0 = 0 .. tau_N = 1, [B, N + 1]."""
    log_weights = tf.nn.log_softmax(self.proposal(tf.stop_gradient(features)))
    edges = tf.cumsum(tf.exp(log_weights), axis=1)
    return log_weights, tf.pad(edges, [[0, 0], [1, 0]])

  def middles(self, edges) -> tf.Tensor:
    """The levels [B, N] between fractions [B, N + 1]."""
    return (edges[:, 1:] + edges[:, :-1]) / 2

  def at_levels(self, features, levels) -> tf.Tensor:
    """Values [B, A, M] at [B, M] levels, with no noise."""
    return self._images(features, tf.stop_gradient(levels))
