"""NumPy code that runs now, or as a part of the graph being built."""

from typing import Any, Callable, List, Sequence

import numpy as np
import tensorflow as tf

from tf_mmdrl.replay import arrays


def run(function: Callable[..., None], *inputs: Any) -> Any:
  """Runs a function for its effect; returns an operation in a graph."""
  if tf.executing_eagerly():
    return function(*inputs)
  return tf.numpy_function(function, inputs, [])


def call(
  function: Callable[..., Sequence[np.ndarray]],
  specs: Sequence[tf.TensorSpec],
  *inputs: Any,
) -> List[tf.Tensor]:
  """Runs a function for its results.

  Args:
    function: returns fresh arrays.
    specs: the specs of these arrays.
    *inputs: what the function is called with.

  Returns:
    The results as tensors.
  """
  if tf.executing_eagerly():
    return arrays.share(function(*inputs))
  tensors = tf.numpy_function(
    lambda *values: tuple(function(*values)),
    inputs,
    [spec.dtype for spec in specs],
  )
  return [tf.ensure_shape(t, s.shape) for t, s in zip(tensors, specs)]
