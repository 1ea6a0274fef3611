"""The layer in place of Keras' own: same weights, same names, same values."""

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.networks.convolutions import FastConv2D

_X = np.random.default_rng(0).normal(size=[2, 12, 12, 4]).astype("f")
_OPTIONS = dict(filters=3, kernel_size=4, strides=2, activation="tanh")


def _model(layer, **options):
  return tf.keras.Sequential([layer(**{**_OPTIONS, **options}, name="conv_0")])


@pytest.mark.parametrize("one, other", [(0, 1), (1, 0)])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_weights_go_from_one_to_the_other(one, other, padding, tmp_path):
  kinds = (tf.keras.layers.Conv2D, FastConv2D)
  saved = _model(kinds[one], padding=padding)
  loaded = _model(kinds[other], padding=padding)
  wanted = saved(_X)
  assert np.any(wanted != loaded(_X))
  names = [[w.name for w in model.weights] for model in (saved, loaded)]
  assert names[0] == names[1]
  path = tf.train.Checkpoint(model=saved).write(str(tmp_path / "weights"))
  tf.train.Checkpoint(model=loaded).read(path).assert_consumed()
  np.testing.assert_allclose(loaded(_X), wanted, atol=1e-6)


@pytest.mark.parametrize(
  "options",
  [
    dict(strides=1, dilation_rate=2),
    dict(filters=4, groups=2),
    dict(strides=(2, 1)),
    dict(use_bias=False),
  ],
)
def test_other_convolutions_are_keras_own(options):
  ours = _model(FastConv2D, **options)
  theirs = _model(tf.keras.layers.Conv2D, **options)
  theirs(_X)
  ours(_X)
  ours.set_weights(theirs.get_weights())
  np.testing.assert_allclose(ours(_X), theirs(_X), atol=1e-6)


def test_pictures_of_any_size():
  ours = FastConv2D(**_OPTIONS)
  ours.build([None, None, None, 4])
  wanted = tf.nn.conv2d(_X, ours.kernel, 2, "VALID")
  np.testing.assert_allclose(ours(_X), tf.tanh(wanted), atol=1e-6)
  assert not ours.is_small


def test_a_copy_is_of_the_same_kind():
  layer = FastConv2D(**_OPTIONS)
  copy = FastConv2D.from_config(layer.get_config())
  assert copy.compute_output_shape([2, 12, 12, 4]) == (2, 5, 5, 3)
