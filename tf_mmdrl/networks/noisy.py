"""Noisy layers: Fortunato et al., "Noisy Networks for Exploration", 2018."""

import math
from typing import Any, Optional

import tensorflow as tf

from tf_mmdrl.core import draws


class NoisyDense(tf.keras.layers.Layer):
  """A dense layer whose weights are mean + deviation x factorised noise."""

  def __init__(
    self,
    units: int,
    activation: Any = None,
    *,
    sigma: float = 0.5,
    scale: float = 1.0,
    share: int = 1,
    **options,
  ):
    """Makes the layer.

    Args:
      units: outputs.
      activation: the activation of these units.
      sigma: sigma_0 of Section 3.2, the deviations' first size.
      scale: what multiplies the means' first size.
      share: how many neighbouring outputs share one noise.
      **options: Keras'.
    """
    super().__init__(**options)
    self._units = units
    self._sigma = sigma
    self._scale = scale
    self._share = share
    self._activation = tf.keras.activations.get(activation)

  def build(self, input_shape):
    """Makes means and deviations as in Section 3.2."""
    width = input_shape[-1]
    bound = 1 / math.sqrt(width)

    def weight(name, shape, initializer):
      return self.add_weight(name, shape, initializer=initializer)

    first = self._scale * bound
    mean = tf.keras.initializers.RandomUniform(-first, first)
    deviation = tf.keras.initializers.Constant(self._sigma * bound)
    self._kernel = weight("kernel", [width, self._units], mean)
    self._kernel_deviation = weight(
      "kernel_deviation", [width, self._units], deviation
    )
    mean = tf.keras.initializers.RandomUniform(-first, first)
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
    noise = draws.normal([width + self._units // self._share], seed)
    noise = tf.sign(noise) * tf.sqrt(tf.abs(noise))
    noise = tf.cast(noise, self.compute_dtype)
    return noise[:width], tf.repeat(noise[width:], self._share)


def through(
  layers, inputs, *, training: bool, seed: Optional[tf.Tensor] = None
):
  """The last layer's output, with fresh noise in each noisy layer."""
  for index, layer in enumerate(layers):
    if isinstance(layer, NoisyDense):
      inputs = layer(inputs, seed=draws.fold(seed, index))
    else:
      inputs = layer(inputs, training=training)
  return inputs
