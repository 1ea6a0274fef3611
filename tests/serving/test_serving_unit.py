"""What is served is in natural rewards, whatever unit an agent learns in."""

import numpy as np
import serving_fixtures
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl import serving
from tf_mmdrl.networks import ParticleNetwork

_OBSERVATION = tensor_spec.BoundedTensorSpec([4], tf.float32, -9, 9)
_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
_SEEN = np.random.default_rng(0).normal(size=[3, 4]).astype(np.float32)


def _network(unit=16.0):
  tf.keras.utils.set_random_seed(4)
  net = ParticleNetwork(_OBSERVATION, _ACTION, 5, fc_layer_params=(8,))
  net.create_variables()
  net.unit.assign(unit)
  return net


def _change(net, unit):
  for change in net.unit_changes(tf.constant(unit)):
    change.variable.assign(change.new(change.variable))
  net.unit.assign(unit)


def test_a_change_of_unit_does_not_show(tmp_path):
  net = _network()
  wanted, _ = net(_SEEN)
  assert np.abs(wanted).max() > 0.5
  serving.publish(net, tmp_path, 1)
  _change(net, 2.0**-4)
  serving.publish(net, tmp_path, 2)
  _change(net, 3.0)  # no power of two: rounded
  serving.publish(net, tmp_path, 3)
  body = {"signature_name": "particles", "instances": _SEEN.tolist()}
  with serving_fixtures.serving(tmp_path, count=3) as server:
    for number in (1, 2, 3):
      loaded = serving.load(_network(unit=7.0), tmp_path, number)
      values, _ = loaded.network(_SEEN)
      np.testing.assert_allclose(values, wanted, rtol=1e-6, atol=1e-6)
      status, answer = server.predict(body, f"policy/versions/{number}")
      assert status == 200
      served = [row["values"] for row in answer["predictions"]]
      np.testing.assert_allclose(served, wanted, rtol=1e-6, atol=1e-6)


class _OldReader:
  """Reads an export as if it had been written before there were units."""

  def __init__(self, reader, num_variables):
    self._reader = reader
    self._missing = f"model_variables/{num_variables - 1}/"

  def has_tensor(self, key):
    return self._missing not in key and self._reader.has_tensor(key)

  def get_tensor(self, key):
    assert self.has_tensor(key)
    return self._reader.get_tensor(key)


def test_exports_of_networks_without_a_unit_load(tmp_path, monkeypatch):
  net = _network(unit=1.0)
  wanted, _ = net(_SEEN)
  assert net.variables[-1] is net.unit
  serving.publish(net, tmp_path, 1)
  load, number = tf.train.load_checkpoint, len(net.variables)
  monkeypatch.setattr(
    tf.train, "load_checkpoint", lambda path: _OldReader(load(path), number)
  )
  values, _ = serving.load(_network(unit=7.0), tmp_path, 1).network(_SEEN)
  np.testing.assert_array_equal(values, wanted)
