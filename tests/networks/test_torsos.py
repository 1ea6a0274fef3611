import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl.core import errors
from tf_mmdrl.networks import ParticleNetwork, torsos

_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)


@pytest.mark.parametrize(
  "spec, scale",
  [
    (tf.TensorSpec([2], tf.uint8), 255),
    (tensor_spec.BoundedTensorSpec([2], tf.uint8, 0, 255), 255),
    (tensor_spec.BoundedTensorSpec([2], tf.uint8, 0, 1), 1),
    (tf.TensorSpec([2], tf.float32), 1),
    (tf.TensorSpec([2], tf.int64), 1),
    (tf.TensorSpec([2], tf.bool), 1),
  ],
)
def test_only_pixels_are_scaled(spec, scale):
  values = tf.cast(tf.constant([[0, 1]]), spec.dtype)
  result = torsos.as_float(values, spec, tf.float32)
  assert result.dtype == tf.float32
  np.testing.assert_allclose(result, [[0, 1 / scale]])


def test_authors_initializer_is_dopamines():
  """Uniform on +- sqrt(3 x scale / fan_in), scale = 1 / sqrt(3)."""
  weights = torsos.authors_initializer()([300, 400]).numpy()
  bound = np.sqrt(3 / np.sqrt(3) / 300)
  assert np.abs(weights).max() <= np.float32(bound)
  np.testing.assert_allclose(np.abs(weights).mean(), bound / 2, rtol=0.02)


def test_minatar_torso():
  spec = tensor_spec.BoundedTensorSpec([10, 10, 4], tf.uint8, 0, 1)
  net = ParticleNetwork(
    spec,
    _ACTION,
    20,
    conv_layer_params=torsos.MINATAR_CONV,
    fc_layer_params=torsos.MINATAR_FC,
  )
  particles, _ = net(tf.ones([5, 10, 10, 4], tf.uint8))
  assert particles.shape == [5, 3, 20]


@pytest.mark.parametrize(
  "make, message",
  [
    (
      lambda: ParticleNetwork(
        tf.TensorSpec([4], tf.float32),
        _ACTION,
        fc_layer_params=(),
        dueling=True,
      ),
      "dueling needs a hidden layer",
    ),
    (
      lambda: ParticleNetwork([tf.TensorSpec([4], tf.float32)] * 2, _ACTION),
      "preprocessing_combiner",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
