"""Torsos: what turns an observation into features.

A torso is described by plain data (layer sizes, padding, initialiser), because
TF-Agents copies a network by building it again from its arguments.
"""

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

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


def layers(
  conv_layer_params: Optional[ConvParams],
  fc_layer_params: Optional[Sequence[int]],
  *,
  padding: str,
  activation: Any,
  make_initializer: Callable[[], tf.keras.initializers.Initializer],
) -> List[tf.keras.layers.Layer]:
  """New, unbuilt layers: convolutions, flatten, dense.

  Args:
    conv_layer_params: (filters, kernel size, stride) of each convolution.
    fc_layer_params: units of each dense layer.
    padding: "valid", as in Mnih et al. (2015), or "same", as in the authors'
      code.
    activation: of every layer.
    make_initializer: makes the initialiser of a layer's kernel.

  Returns:
    The layers, to be called in order.
  """
  convolutions = [
    tf.keras.layers.Conv2D(
      filters,
      size,
      stride,
      padding=padding,
      activation=activation,
      kernel_initializer=make_initializer(),
      name=f"conv_{index}",
    )
    for index, (filters, size, stride) in enumerate(conv_layer_params or ())
  ]
  dense = [
    tf.keras.layers.Dense(
      units,
      activation=activation,
      kernel_initializer=make_initializer(),
      name=f"dense_{index}",
    )
    for index, units in enumerate(fc_layer_params or ())
  ]
  return [*convolutions, tf.keras.layers.Flatten(name="flatten"), *dense]


def as_float(
  observation: tf.Tensor, spec: tf.TensorSpec, dtype: tf.DType
) -> tf.Tensor:
  """Pixels become [0, 1]; other numbers keep their value.

  Args:
    observation: [B, ...].
    spec: its spec; uint8 up to 1 (MinAtar's planes) are no pixels.
    dtype: of the result.

  Returns:
    The observation in that dtype.
  """
  largest = np.max(getattr(spec, "maximum", 255))
  scale = 255 if spec.dtype == tf.uint8 and largest > 1 else 1
  observation = tf.cast(observation, dtype)
  return observation if scale == 1 else observation / scale
