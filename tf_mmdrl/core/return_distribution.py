"""The distribution of a return, or of several at once, as particles."""

from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

import tensorflow as tf

from tf_mmdrl.core import errors


class ReturnDistribution(NamedTuple):
  """The distribution sum_i w_i delta(values_i) of each example (and action).

  Attributes:
    values: [..., N] particles.
    log_weights: [..., N] log-weights, normalised over N; uniform if None.
    levels: [..., N] the quantile level of each particle, where it has one.
  """

  values: tf.Tensor
  log_weights: Optional[tf.Tensor] = None
  levels: Optional[tf.Tensor] = None

  @classmethod
  def of(cls, output: Any) -> "ReturnDistribution":
    """The distribution in a network's output, which may be bare particles."""
    if not isinstance(output, ReturnDistribution):
      return cls(output)
    kind = type(output)  # the joint one knows itself
    return kind(*(None if isinstance(part, tuple) else part for part in output))

  def as_nest(self) -> Any:
    """This distribution as a nest; in nests of TensorFlow None is a leaf."""
    if self.log_weights is None and self.levels is None:
      return self.values
    return ReturnDistribution(*(() if part is None else part for part in self))

  @property
  def shape(self) -> tf.TensorShape:
    """[..., N], of the weights; also of specs."""
    return self.values.shape

  def mean(self) -> tf.Tensor:
    """[...] expected returns, Q if there is an action axis."""
    if self.log_weights is None:
      return tf.reduce_mean(self.values, axis=-1)
    return tf.reduce_sum(self.weights() * self.values, axis=-1)

  def deviation(self) -> tf.Tensor:
    """[...] standard deviations."""
    centred = tf.square(self.values - self.mean()[..., tf.newaxis])
    return tf.sqrt(tf.reduce_sum(self.weights() * centred, axis=-1))

  def particle_at(self, share: tf.Tensor) -> tf.Tensor:
    """The particle at which the cumulated weights exceed a share of all.

    Args:
      share: [...] in [0, 1); uniform draws give draws of the distribution.

    Returns:
      [...] particles, in the order they are in.
    """
    num = self.values.shape[-1]
    if self.log_weights is None:
      index = tf.cast(share * num, tf.int32)
    else:
      below = tf.cumsum(self.weights(), axis=-1) <= share[..., tf.newaxis]
      index = tf.reduce_sum(tf.cast(below, tf.int32), axis=-1)
    index = tf.minimum(index, num - 1)  # the sum of weights may round below 1
    return tf.gather(self.values, index, batch_dims=index.shape.rank)

  def distorted(
    self, distortion: Callable[[tf.Tensor], tf.Tensor]
  ) -> tf.Tensor:
    """The mean after a distortion h of the cumulative distribution function.

    Args:
      distortion: h, increasing from h(0) = 0 to h(1) = 1, elementwise.

    Returns:
      [...] integral of z d h(F(z)), exact for the particles.
    """
    values, weights = self._sorted()
    # By its own last entry: the distribution function must end at 1 exactly,
    # because Wang's distortion is infinitely steep there.
    cumulative = tf.cumsum(weights, axis=-1)
    after = distortion(cumulative / cumulative[..., -1:])
    before = tf.pad(
      after[..., :-1], [[0, 0]] * (after.shape.rank - 1) + [[1, 0]]
    )
    return tf.reduce_sum(values * (after - before), axis=-1)

  def weights(self) -> tf.Tensor:
    """[..., N] probabilities of the particles."""
    if self.log_weights is None:
      number = tf.cast(tf.shape(self.values)[-1], self.values.dtype)
      return tf.ones_like(self.values) / number
    return tf.exp(self.log_weights)

  def cvar(self, level: Union[float, tf.Tensor]) -> tf.Tensor:
    """The mean of the lowest returns that have the probability `level`.

    Exact for the particles: the one at the border counts with the part of its
    weight that lies below. Level 1 gives the mean.

    Args:
      level: in (0, 1]; a number, or a tensor that broadcasts with [...], such
        as [B, 1] for distributions of [B, A, N].

    Returns:
      [...] conditional values at risk (expected shortfalls).
    """
    if isinstance(level, (int, float)) and not 0 < level <= 1:
      raise errors.UserError(
        f"the level of a CVaR must lie in (0, 1], got {level}; 1 is the mean"
      )
    values, weights = self._sorted()
    level = tf.cast(level, values.dtype)[..., tf.newaxis]
    before = tf.cumsum(weights, axis=-1, exclusive=True)
    share = tf.clip_by_value(level - before, 0.0, weights)
    # By their sum, which is the level up to the rounding of the weights.
    share /= tf.reduce_sum(share, axis=-1, keepdims=True)
    return tf.reduce_sum(share * values, axis=-1)

  def _sorted(self) -> Tuple[tf.Tensor, tf.Tensor]:
    """[..., N] values in increasing order and their weights."""
    if self.log_weights is None:
      return tf.sort(self.values, axis=-1), self.weights()
    order = tf.argsort(self.values, axis=-1)
    rank = self.values.shape.rank
    return (
      tf.gather(self.values, order, batch_dims=rank - 1),
      tf.gather(self.weights(), order, batch_dims=rank - 1),
    )

  def at(self, actions: tf.Tensor) -> "ReturnDistribution":
    """The distributions of the actions taken.

    Args:
      actions: [B] action indices, for distributions of [B, A, N].

    Returns:
      Distributions of [B, N].
    """
    # A product with a one-hot row, because its gradient is one too; that of a
    # gather is a scatter, which is slow. No matrix product, which some GPUs
    # round to ten bits.
    chosen = tf.one_hot(actions, self.values.shape[1], dtype=self.values.dtype)
    chosen = chosen[..., tf.newaxis]

    def choose(part):
      by = chosen if part.shape.rank == 3 else chosen[..., tf.newaxis]
      return tf.reduce_sum(by * part, axis=1)

    return self._map(choose)

  def stop_gradient(self) -> "ReturnDistribution":
    """The same distribution as a constant."""
    return self._map(tf.stop_gradient)

  def _map(self, function) -> "ReturnDistribution":
    parts = (None if part is None else function(part) for part in self)
    return type(self)(*parts)

  def map_values(self, function) -> "ReturnDistribution":
    """The distribution of function(return)."""
    return self._replace(values=function(self.values))


class JointReturnDistribution(ReturnDistribution):
  """The joint distribution of D returns: particles are vectors.

  What a scalar distribution is asked for in one number (a quantile, a CVaR) a
  joint one has only after a utility has made one number of each particle; see
  `utility`.

  Attributes:
    values: [..., N, D] particles.
    log_weights: [..., N] log-weights, normalised over N; uniform if None.
    levels: None.
  """

  __slots__ = ()

  def as_nest(self) -> "JointReturnDistribution":
    """The same for TensorFlow's nests; never bare particles.

    Those of shape [B, A, N, D] could not be told from scalar ones [B, T, A, N].
    """
    return JointReturnDistribution(
      *(() if part is None else part for part in self)
    )

  @property
  def shape(self) -> tf.TensorShape:
    """[..., N], of the weights."""
    return self.values.shape[:-1]

  @property
  def dimensions(self) -> int:
    """D."""
    return self.values.shape[-1]

  def weights(self) -> tf.Tensor:
    """[..., N] probabilities of the particles."""
    if self.log_weights is not None:
      return tf.exp(self.log_weights)
    number = tf.cast(tf.shape(self.values)[-2], self.values.dtype)
    return tf.ones_like(self.values[..., 0]) / number

  def mean(self) -> tf.Tensor:
    """[..., D] expected returns."""
    if self.log_weights is None:
      return tf.reduce_mean(self.values, axis=-2)
    return tf.reduce_sum(self.weights()[..., tf.newaxis] * self.values, axis=-2)

  def deviation(self) -> tf.Tensor:
    """[..., D] standard deviations of each return."""
    centred = tf.square(self.values - self.mean()[..., tf.newaxis, :])
    share = self.weights()[..., tf.newaxis]
    return tf.sqrt(tf.reduce_sum(share * centred, axis=-2))

  def correlation(self) -> tf.Tensor:
    """[..., D, D] correlations; 0 with a return that does not vary."""
    centred = self.values - self.mean()[..., tf.newaxis, :]
    share = self.weights()[..., tf.newaxis]
    covariance = tf.matmul(share * centred, centred, transpose_a=True)
    size = tf.sqrt(tf.linalg.diag_part(covariance))
    scale = size[..., tf.newaxis] * size[..., tf.newaxis, :]
    return tf.math.divide_no_nan(covariance, scale)

  def utility(
    self, function: Callable[[tf.Tensor], tf.Tensor]
  ) -> ReturnDistribution:
    """The distribution of function(returns), a number of each particle.

    Args:
      function: [..., D] vectors -> [...] numbers.

    Returns:
      Distributions of [..., N].
    """
    return ReturnDistribution(function(self.values), self.log_weights)

  def part(self, index: int) -> ReturnDistribution:
    """The marginal distribution of one of the returns, [..., N]."""
    return self.utility(lambda values: values[..., index])

  def particle_at(self, share):
    """Not for vectors: the order of particles says nothing about them."""
    raise _needs_utility("a particle drawn")

  def _sorted(self):
    raise _needs_utility("a quantile or a CVaR")


def _needs_utility(what: str) -> errors.UserError:
  return errors.UserError(
    f"{what} is wanted of a joint distribution of returns, whose particles are"
    " vectors; make numbers of them first: distribution.utility(function)"
  )
