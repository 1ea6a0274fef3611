"""A small network, a server in a thread, and a client."""

import asyncio
import contextlib
import http.client
import json
import threading

import numpy as np
import tensorflow as tf
from tf_agents.networks import network
from tf_agents.specs import tensor_spec

from tf_mmdrl.core import ReturnDistribution
from tf_mmdrl.serving import server as servers

SHAPE = (10, 10, 4)
SIGNATURES = ("serving_default", "action", "action_bytes", "particles", "risk")
OBSERVATION = tensor_spec.BoundedTensorSpec(SHAPE, tf.uint8, 0, 1)


class WeightedNetwork(network.Network):
  """observation -> 3 actions with 4 particles of unequal weights."""

  def __init__(self, spec=OBSERVATION, name="WeightedNetwork"):
    super().__init__(spec, state_spec=(), name=name)
    self._dense = tf.keras.layers.Dense(3 * 4 * 2)

  def call(self, observation, step_type=None, network_state=(), training=False):
    flat = tf.reshape(tf.cast(observation, tf.float32), [-1, 400])
    both = tf.reshape(self._dense(flat), [-1, 2, 3, 4])
    log_weights = tf.nn.log_softmax(both[:, 1])
    return ReturnDistribution(both[:, 0], log_weights), network_state


def weighted_network():
  net = WeightedNetwork()
  net(tf.zeros([1, *SHAPE], tf.uint8))
  return net


def observations(size, seed=0):
  generator = np.random.default_rng(seed)
  return generator.integers(0, 2, (size, *SHAPE), np.uint8)


class Running:
  """A server that runs in a thread.

  Attributes:
    port: where it listens.
    log: the lines it wrote.
  """

  def __init__(self, directory, tls=None, **options):
    self.log = []
    self._tls = tls
    options.setdefault("poll_seconds", 0.1)
    self._server = servers.Server(directory, log=self.log.append, **options)
    self._loop = asyncio.new_event_loop()
    self._thread = threading.Thread(target=self._loop.run_forever)

  def start(self):
    self._thread.start()
    try:
      self.port = self.wait_for(self._server.start("127.0.0.1", 0, self._tls))
    except Exception:
      self.stop()
      raise

  def connections(self):
    """The connections that are open now."""
    return list(self._server._http.connections)

  def wait_for(self, coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

  def stop(self):
    self.wait_for(self._server.stop())
    self.wait_for(_cancel_the_rest())
    self._loop.call_soon_threadsafe(self._loop.stop)
    self._thread.join()
    self._loop.close()

  def request(self, method, path, body=None, headers=None):
    """(status, decoded body) of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
    with contextlib.closing(connection):
      connection.request(method, path, body, headers or {})
      response = connection.getresponse()
      content = response.read()
      is_json = response.headers["Content-Type"] == "application/json"
      return response.status, json.loads(content) if is_json else content

  def predict(self, body, path="policy"):
    text = body if isinstance(body, bytes) else json.dumps(body)
    return self.request("POST", f"/v1/models/{path}:predict", text)


async def _cancel_the_rest():
  """As asyncio.run does at its end."""
  tasks = asyncio.all_tasks() - {asyncio.current_task()}
  for task in tasks:
    task.cancel()
  await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def serving(directory, **options):
  running = Running(directory, **options)
  running.start()
  try:
    yield running
  finally:
    running.stop()
