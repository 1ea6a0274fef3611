"""Torsos: what turns an observation into features.

A torso is described by plain data (layer sizes, padding, initialiser), because
TF-Agents copies a network by building it again from its arguments.
"""

import math
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.networks import convolutions, noisy

# (filters, kernel size, stride) of each convolution.
ConvParams = Sequence[Tuple[int, int, int]]

NATURE_CONV: ConvParams = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
NATURE_FC = (512,)
MINATAR_CONV: ConvParams = ((16, 3, 1),)
MINATAR_FC = (128,)


def authors_initializer() -> tf.keras.initializers.Initializer:
  """The initialiser of the authors' code (and of Dopamine)."""
  return tf.keras.initializers.VarianceScaling(
    scale=1 / math.sqrt(3), mode="fan_in", distribution="uniform"
  )


class Scaled(tf.keras.initializers.Initializer):
  """Another initialiser's values times a number."""

  def __init__(self, initializer: tf.keras.initializers.Initializer, scale):
    self._initializer = initializer
    self._scale = scale

  def __call__(self, shape, dtype=None, **options):
    """Values of that shape."""
    return self._scale * self._initializer(shape, dtype=dtype, **options)

  def get_config(self):
    """The arguments of the layer, as Keras asks for them."""
    return {"initializer": self._initializer, "scale": self._scale}


class Builder(NamedTuple):
  """How the layers of a network are made.

  Attributes:
    activation: the activation of every layer but the last.
    make_initializer: makes the initialiser of a layer's kernel.
    padding: the padding of convolutions; "valid", as in Mnih et al. (2015), or
      "same", as in the authors' code.
    noise: sigma_0 of dense layers that are noisy; None: they are not.
    output_scale: what multiplies the last layer's first weights.
  """

  activation: Any
  make_initializer: Callable[[], tf.keras.initializers.Initializer]
  padding: str = "valid"
  noise: Optional[float] = None
  output_scale: float = 1.0

  def torso(
    self,
    conv_layer_params: Optional[ConvParams],
    fc_layer_params: Sequence[int],
  ) -> List[tf.keras.layers.Layer]:
    """New, unbuilt layers: convolutions, flatten, dense."""
    layers = [
      convolutions.FastConv2D(
        filters,
        size,
        stride,
        padding=self.padding,
        activation=self.activation,
        kernel_initializer=self.make_initializer(),
        name=f"conv_{index}",
      )
      for index, (filters, size, stride) in enumerate(conv_layer_params or ())
    ]
    flatten = tf.keras.layers.Flatten(name="flatten")
    return [*layers, flatten, *self.hidden(fc_layer_params)]

  def hidden(self, fc_layer_params: Sequence[int]):
    """New dense layers with the activation."""
    return [
      self.dense(units, f"dense_{index}", activation=self.activation)
      for index, units in enumerate(fc_layer_params)
    ]

  def output(
    self, units: int, name: str, share_noise: int = 1
  ) -> tf.keras.layers.Layer:
    """A new last layer, in float32 always: returns need the digits."""
    share = {} if self.noise is None else {"share": share_noise}
    return self.dense(
      units, name, scale=self.output_scale, dtype="float32", **share
    )

  def dense(
    self, units: int, name: str, scale: float = 1.0, **options
  ) -> tf.keras.layers.Layer:
    """A new dense layer, noisy if all are."""
    if self.noise is not None:
      return noisy.NoisyDense(
        units, name=name, sigma=self.noise, scale=scale, **options
      )
    initializer = self.make_initializer()
    if scale != 1:
      initializer = Scaled(initializer, scale)
    return tf.keras.layers.Dense(
      units, name=name, kernel_initializer=initializer, **options
    )


def as_float(
  observation: tf.Tensor, spec: tf.TensorSpec, dtype: tf.DType
) -> tf.Tensor:
  """Pixels become [0, 1]; other numbers keep their value.

  Args:
    observation: [B, ...].
    spec: its spec; uint8 up to 1 (MinAtar's planes) are no pixels.
    dtype: the dtype of the result.

  Returns:
    The observation in that dtype.
  """
  largest = np.max(getattr(spec, "maximum", 255))
  scale = 255 if spec.dtype == tf.uint8 and largest > 1 else 1
  observation = tf.cast(observation, dtype)
  return observation if scale == 1 else observation / scale
