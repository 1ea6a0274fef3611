"""Convolutions against TensorFlow's own in float64."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops import convolution

_MODES = {
  "eager": lambda function: function,
  "graph": tf.function,
  "xla": functools.partial(tf.function, jit_compile=True),
}
# (H, W, C), (h, w, F), stride.
_LAYERS = {
  "nature 1": ((84, 84, 4), (8, 8, 32), 4),
  "nature 2": ((20, 20, 32), (4, 4, 64), 2),
  "nature 3": ((9, 9, 64), (3, 3, 64), 1),
  "minatar": ((10, 10, 4), (3, 3, 16), 1),
  "rest is not seen": ((11, 15, 3), (4, 4, 5), 2),
  "small blocks": ((7, 9, 2), (2, 4, 3), 2),
  "kernel no multiple": ((9, 9, 3), (3, 3, 4), 2),
  "stride beyond kernel": ((9, 9, 3), (2, 2, 4), 3),
}


def _arrays(layer, dtype):
  size, (height, width, filters), _ = _LAYERS[layer]
  rng = np.random.default_rng(0)
  x = rng.normal(size=[2, *size])
  kernel = rng.normal(size=[height, width, size[-1], filters])
  return tf.constant(x, dtype), tf.constant(kernel, dtype)


def _with_gradients(convolve, x, kernel):
  """The values, and the gradients of their weighted sum in both arguments."""
  with tf.GradientTape() as tape:
    tape.watch([x, kernel])
    values = convolve(x, kernel)
    places = tf.range(tf.size(values, tf.int64))
    weights = tf.reshape(tf.sin(tf.cast(places, x.dtype)), values.shape)
    total = tf.reduce_sum(weights * values)
  return [values, *tape.gradient(total, [x, kernel])]


def _cases():
  # XLA compiles for a second: one layer of each way is enough.
  fast = ("nature 2", "minatar", "kernel no multiple")
  for layer in _LAYERS:
    for mode in _MODES:
      is_slow = mode == "xla" and layer not in fast
      yield pytest.param(
        layer, mode, marks=[pytest.mark.slow] if is_slow else []
      )


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("layer, mode", _cases())
def test_values_and_gradients_are_those_of_conv2d(layer, padding, mode):
  stride = _LAYERS[layer][-1]
  wanted = _with_gradients(
    lambda x, kernel: tf.nn.conv2d(x, kernel, stride, padding),
    *_arrays(layer, tf.float64),
  )
  ours = functools.partial(
    convolution.convolution, stride=stride, padding=padding, by_blocks=True
  )
  function = _MODES[mode](functools.partial(_with_gradients, ours))
  got = function(*_arrays(layer, tf.float32))
  for one, other in zip(got, wanted, strict=True):
    assert one.shape == other.shape
    scale = np.max(np.abs(other))
    np.testing.assert_allclose(one / scale, other / scale, atol=1e-6)


def test_batches_of_any_size():
  x, kernel = _arrays("minatar", tf.float32)
  function = tf.function(
    lambda x: convolution.convolution(x, kernel, stride=1, padding="VALID"),
    input_signature=[tf.TensorSpec([None, 10, 10, 4])],
  )
  for size in (1, 2):
    wanted = tf.nn.conv2d(x[:size], kernel, 1, "VALID")
    np.testing.assert_allclose(function(x[:size]), wanted, atol=1e-5)


def test_only_few_patches_are_laid_out():
  def is_small(size, kernel, stride):
    return convolution.geometry(size, kernel, stride, "VALID").is_small

  assert is_small((10, 10, 10), (3, 3, 10, 16), 1)
  assert not is_small((84, 84, 4), (8, 8, 4, 32), 4)
  assert not is_small((9, 9, 64), (3, 3, 64, 64), 1)
  assert not is_small((10, 10, 4), (3, 3, 4, 16), 2)  # not computed so


def test_the_default_is_conv2d_where_onednn_computes_it(monkeypatch):
  x, kernel = _arrays("nature 2", tf.float32)

  def operations(has_onednn):
    monkeypatch.setattr(convolution, "has_onednn", lambda: has_onednn)
    graph = tf.function(
      lambda: convolution.convolution(x, kernel, stride=2, padding="VALID")
    ).get_concrete_function()
    return {operation.type for operation in graph.graph.get_operations()}

  assert "SpaceToDepth" not in operations(True)
  assert "SpaceToDepth" in operations(False)
