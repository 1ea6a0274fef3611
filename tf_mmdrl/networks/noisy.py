"""Noisy layers: Fortunato et al., "Noisy Networks for Exploration", 2018.

What is random in a network draws from a seed that the caller gives, int [2],
as `tf.random.stateless` functions do. A seed made of the training step lets a
resumed run draw what the run that was never cut drew.
"""

import math
from typing import Any, Optional

import tensorflow as tf

_SIGMA = 0.5  # Section 3.2, for factorised noise


class NoisyDense(tf.keras.layers.Layer):
  """A dense layer whose weights are mean + deviation x factorised noise."""

  def __init__(self, units: int, activation: Any = None, **options):
    """Makes the layer; `options` are Keras'."""
    super().__init__(**options)
    self._units = units
    self._activation = tf.keras.activations.get(activation)

  def build(self, input_shape):
    """Makes means and deviations as in Section 3.2."""
    width = input_shape[-1]
    bound = 1 / math.sqrt(width)

    def weight(name, shape, initializer):
      return self.add_weight(name, shape, initializer=initializer)

    mean = tf.keras.initializers.RandomUniform(-bound, bound)
    deviation = tf.keras.initializers.Constant(_SIGMA * bound)
    self._kernel = weight("kernel", [width, self._units], mean)
    self._kernel_deviation = weight(
      "kernel_deviation", [width, self._units], deviation
    )
    mean = tf.keras.initializers.RandomUniform(-bound, bound)
    self._bias = weight("bias", [self._units], mean)
    self._bias_deviation = weight("bias_deviation", [self._units], deviation)
    super().build(input_shape)

  def call(
    self, inputs: tf.Tensor, seed: Optional[tf.Tensor] = None
  ) -> tf.Tensor:
    """[B, units]; without a seed, with the mean weights."""
    outputs = tf.linalg.matmul(inputs, self._kernel) + self._bias
    if seed is not None:
      into, out_of = self._noise(seed, inputs.shape[-1])
      # (x * e_in) S * e_out = x (S * e_in e_out'): no noisy kernel is formed.
      outputs += out_of * (
        tf.linalg.matmul(inputs * into, self._kernel_deviation)
        + self._bias_deviation
      )
    return self._activation(outputs)

  def _noise(self, seed, width):
    """f(e) of the inputs [F] and of the outputs [units], equations 10-11."""
    noise = tf.random.stateless_normal([width + self._units], seed)
    noise = tf.sign(noise) * tf.sqrt(tf.abs(noise))
    noise = tf.cast(noise, self.compute_dtype)
    return noise[:width], noise[width:]


def through(
  layers, inputs, *, training: bool, seed: Optional[tf.Tensor] = None
):
  """The last layer's output, with fresh noise in each noisy layer."""
  for index, layer in enumerate(layers):
    if isinstance(layer, NoisyDense):
      inputs = layer(inputs, seed=fold(seed, index))
    else:
      inputs = layer(inputs, training=training)
  return inputs


def fold(seed: Optional[tf.Tensor], number: int) -> Optional[tf.Tensor]:
  """A seed for one of several uses; None stays None."""
  if seed is None:
    return None
  return tf.random.experimental.stateless_fold_in(seed, number)
