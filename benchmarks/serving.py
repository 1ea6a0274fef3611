"""The server under load, beside a loop that calls the model directly.

  python benchmarks/serving.py [--seconds 30] [--connections 32]

Three contenders take turns, so that a busy machine disturbs all alike: a loop
that calls the SavedModel for one observation at a time (no HTTP at all), `mmdrl
serve`, and `mmdrl serve` that may not put requests together. The client keeps
all connections busy with requests of one observation, as lists of numbers or in
base64, or of eight, and checks every answer. It shares the machine with the
server, and both have to do with HTTP and JSON what the loop need not. Read the
ratios, not the figures.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401  (before TensorFlow: Keras 2)

# isort: split

import numpy as np
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl import serving
from tf_mmdrl.networks import ParticleNetwork, torsos

_ACTIONS = 6
_DISTINCT = 64  # observations that the clients send in turn
_TURNS = 3
# How observations are sent -> how many in a request.
_FORMS = {"lists": 1, "base64": 1, "base64 x8": 8}


class Shape(NamedTuple):
  """A kind of observation and the network for it."""

  size: tuple
  largest: int
  convolutions: tuple
  dense: tuple


_SHAPES = {
  "MinAtar": Shape((10, 10, 4), 1, torsos.MINATAR_CONV, torsos.MINATAR_FC),
  "Atari": Shape((84, 84, 4), 255, torsos.NATURE_CONV, torsos.NATURE_FC),
}


class Load:
  """What a contender did: seconds of each call, and what was wrong."""

  def __init__(self, rows: int = 1):
    """Begins with nothing; a call is about `rows` observations."""
    self._rows = rows
    self.times: List[float] = []
    self.seconds = 0.0
    self.errors = 0
    self.wrong = 0

  @property
  def rate(self) -> float:
    """Observations a second."""
    return self._rows * len(self.times) / self.seconds

  def percentile(self, share: float) -> float:
    """Of the time of a call, in milliseconds."""
    return 1e3 * float(np.percentile(self.times, share))


class Connection(asyncio.Protocol):
  """Sends requests one after the other and checks the answers."""

  def __init__(self, load: Load, requests, expected, first: int):
    """Begins with request number `first`."""
    self._load = load
    self._requests = requests
    self._expected = expected
    self._next = first
    self._received = b""
    self.stopping = False
    self.closed = asyncio.get_running_loop().create_future()

  def connection_made(self, transport):
    """Sends the first request."""
    self._transport = transport
    self._send()

  def _send(self):
    self._number = self._next % len(self._requests)
    self._next += 1
    self._started = time.perf_counter()
    self._transport.write(self._requests[self._number])

  def data_received(self, data):
    """Checks an answer when it is whole, and sends the next request."""
    self._received += data
    head, blank, body = self._received.partition(b"\r\n\r\n")
    if not blank:
      return
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    if len(body) < length:
      return
    self._load.times.append(time.perf_counter() - self._started)
    self._received = b""
    if head.startswith(b"HTTP/1.1 200"):
      self._check(json.loads(body)["predictions"])
    else:
      self._load.errors += 1
    if self.stopping:
      self._transport.close()
    else:
      self._send()

  def _check(self, answers: List[dict]):
    first = self._number * len(answers)
    for wanted, answer in zip(self._expected[first:], answers):
      got = answer["q_values"]
      close = max(abs(a - b) for a, b in zip(wanted, got)) < 1e-5
      if not close or got[answer["action"]] != max(got):
        self._load.wrong += 1

  def connection_lost(self, exception):
    """Lets `_attack` go on; an unasked end is an error."""
    self._load.errors += not self.stopping
    self.closed.set_result(None)


async def _attack(load, port, requests, expected, connections, seconds):
  loop = asyncio.get_running_loop()
  made = []
  start = time.perf_counter()
  for index in range(connections):
    first = index * len(requests) // connections
    _, connection = await loop.create_connection(
      lambda first=first: Connection(load, requests, expected, first),
      "127.0.0.1",
      port,
    )
    made.append(connection)
  await asyncio.sleep(seconds)
  for connection in made:
    connection.stopping = True
  await asyncio.gather(*(connection.closed for connection in made))
  load.seconds += time.perf_counter() - start


def _loop(load, function, observations, seconds):
  start = time.perf_counter()
  number = 0
  while time.perf_counter() - start < seconds:
    before = time.perf_counter()
    row = number % len(observations)
    answer = function(observation=tf.constant(observations[row : row + 1]))
    answer["action"].numpy()
    load.times.append(time.perf_counter() - before)
    number += 1
  load.seconds += time.perf_counter() - start


def _request(body: dict) -> bytes:
  content = json.dumps(body, separators=(",", ":")).encode()
  head = (
    "POST /v1/models/policy:predict HTTP/1.1\r\nHost: localhost\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
  )
  return head.encode() + content


def _requests(observations, form: str) -> List[bytes]:
  if form == "lists":
    return [_request({"instances": [o.tolist()]}) for o in observations]
  rows = [{"b64": base64.b64encode(o.tobytes()).decode()} for o in observations]
  size = _FORMS[form]
  return [
    _request(
      {"signature_name": "action_bytes", "instances": rows[i : i + size]}
    )
    for i in range(0, len(rows), size)
  ]


@contextlib.contextmanager
def _server(directory, *flags):
  """The port of a server that runs meanwhile."""
  command = [sys.executable, "-m", "tf_mmdrl", "serve", str(directory)]
  process = subprocess.Popen(
    [*command, "--port", "0", *flags], stdout=subprocess.PIPE, text=True
  )
  try:
    for line in process.stdout:
      if line.startswith("serving at"):
        yield int(re.search(r":(\d+)/", line)[1])
        break
  finally:
    process.terminate()
    process.wait()


def _export(shape: Shape, directory: pathlib.Path):
  """Publishes an untrained policy; returns its plain signature."""
  network = ParticleNetwork(
    tensor_spec.BoundedTensorSpec(shape.size, tf.uint8, 0, shape.largest),
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, _ACTIONS - 1),
    conv_layer_params=shape.convolutions,
    fc_layer_params=shape.dense,
  )
  network.create_variables()
  path = serving.publish(network, directory, 1)
  loaded = tf.saved_model.load(str(path))
  return loaded, loaded.signatures["serving_default"]


def _measure(name: str, directory, args) -> None:
  shape = _SHAPES[name]
  keep, function = _export(shape, directory)
  size = (_DISTINCT, *shape.size)
  generator = np.random.default_rng(0)
  observations = generator.integers(0, shape.largest + 1, size, np.uint8)
  expected = function(observation=observations)["q_values"].numpy().tolist()
  with (
    _server(directory) as port,
    _server(directory, "--max-batch", "1") as single,
  ):
    for form, rows in _FORMS.items():
      requests = _requests(observations, form)
      ports = {"batching": port, "single": single}
      loads = {"loop": Load(), **{k: Load(rows) for k in ports}}
      _loop(Load(), function, observations, 0.5)  # warms up
      for _ in range(_TURNS):
        seconds = args.seconds / _TURNS
        _loop(loads["loop"], function, observations, seconds)
        for contender, at in ports.items():
          attack = (requests, expected, args.connections, seconds)
          asyncio.run(_attack(loads[contender], at, *attack))
      _print(name, form, loads)
  del keep


def _print(name: str, form: str, loads: Dict[str, Load]) -> None:
  for contender, load in loads.items():
    label = f"{name:8} {form}" if contender == "loop" else ""
    print(
      f"{label:19}{contender:10}{load.rate:9.0f}"
      f"{load.rate / loads['loop'].rate:8.2f}"
      f"{load.rate / loads['single'].rate:10.2f}"
      f"{load.percentile(50):9.2f}{load.percentile(99):9.2f}"
      f"{load.errors:8}{load.wrong:7}",
      flush=True,
    )


def main() -> None:
  """Measures, and prints a table."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--seconds", type=float, default=30.0, help="of each")
  parser.add_argument("--connections", type=int, default=32)
  parser.add_argument("--shapes", nargs="+", default=list(_SHAPES))
  args = parser.parse_args()
  print(
    f"tensorflow {tf.__version__}, {os.cpu_count()} cores,"
    f" {args.connections} connections, {args.seconds:g} s each"
  )
  print(
    f"{'observation':19}{'':10}{'per s':>9}{'/ loop':>8}{'/ single':>10}"
    f"{'p50 ms':>9}{'p99 ms':>9}{'errors':>8}{'wrong':>7}"
  )
  for name in args.shapes:
    with tempfile.TemporaryDirectory() as directory:
      _measure(name, pathlib.Path(directory), args)


if __name__ == "__main__":
  main()
