"""Attacks a real `mmdrl serve`: is anything lost, silent, or a traceback?

  python benchmarks/server_faults.py [--requests 1000] [--seconds 30]

- Malformed requests of every kind in malformed_requests.py, each of which must
  get its status and one line, and connections that stop in the middle, which
  must be cut.
- The worst mix of requests that the limits allow, from many clients at a time:
  /healthz must answer throughout, and the server's memory stay under
  `Limits.memory_bytes` above what it had when it was warm.
- Every file of a version truncated, emptied, changed by a bit, removed, or
  replaced by a link, each as the newest version: the newest good one must
  serve on and the damage be in the status; while it runs, at its start, and by
  `mmdrl play`.

It prints a table and ends with 1 unless all of its counts are 0.
"""

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time
from typing import Dict, List, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401  (before TensorFlow: Keras 2)

# isort: split

import damaged_exports
import malformed_requests
import tensorflow as tf
from malformed_requests import post
from served import Row, Served, serving, show
from tf_agents.specs import tensor_spec

from tf_mmdrl import serving as exports
from tf_mmdrl.networks import ParticleNetwork
from tf_mmdrl.serving import formats
from tf_mmdrl.serving.limits import Limits

_GOOD = post(b'{"instances": [[0.1, 0.2, 0.3, 0.4]]}')
_MIB = 2**20
_CLIENTS = 16
_HEALTH_SECONDS = 5.0  # /healthz must answer within


def publish(directory: pathlib.Path) -> None:
  """Version 1: CartPole's shapes, 200 particles; other formats beside it."""
  net = ParticleNetwork(
    tensor_spec.BoundedTensorSpec([4], tf.float32, -9, 9),
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1),
    200,
    fc_layer_params=(64, 64),
  )
  net.create_variables()
  extras = [formats.tflite(net)]
  exports.publish(net, directory, 1, extras=extras)


def malformed(server: Served, number: int) -> Row:
  """Sends malformed requests; after each kind the server must still answer."""
  lost = silent = 0
  kinds = len(malformed_requests.KINDS)
  for index in range(number):
    request = malformed_requests.make(index)
    answer = server.raw(request.content)
    lost += answer.status == 0
    if answer.status not in request.statuses or not answer.error:
      silent += 1
      print(f"silent: {request.content[:200]!r}: {answer}")
    if index % kinds == 0:
      lost += server.raw(_GOOD).status != 200
  return Row(
    f"malformed requests of {kinds} kinds",
    number,
    lost,
    silent,
    server.tracebacks(),
  )


def stopping(server: Served, number: int) -> Row:
  """Connections that stop in the middle of a request, all at a time."""
  head = b"POST /v1/models/policy:predict HTTP/1.1\r\nHost: x\r\n"
  starts = (
    b"",
    b"GET /hea",
    head,
    head + b"Content-Length: 100\r\n\r\n{",
    head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
  )
  limit = Limits().seconds + 5

  def stop(index: int) -> Tuple[bool, float]:
    start = time.monotonic()
    answer = server.raw(starts[index % len(starts)], 2 * limit)
    # 503 where bodies without a length have taken all of the room.
    return answer.status in (0, 408, 503), time.monotonic() - start

  with concurrent.futures.ThreadPoolExecutor(number) as threads:
    found = list(threads.map(stop, range(number)))
  slowest = max(seconds for _, seconds in found)
  return Row(
    "connections that stop in the middle",
    number,
    sum(seconds > limit for _, seconds in found)
    + (server.raw(_GOOD).status != 200),
    sum(not good for good, _ in found),
    server.tracebacks(),
    f"the last was cut after {slowest:.1f} s",
  )


def _full(start: str, item: str, end: str = "]}") -> bytes:
  """A body as large as the limit allows."""
  times = (Limits().body_bytes - len(start) - len(end) - 1) // len(item)
  return post((start + (item * times)[:-1] + end).encode())


def _heavy() -> Dict[str, bytes]:
  """Requests that take the most of something, within the limits or just not."""
  particles = '{"signature_name":"particles","instances":['
  row = "[0.1,0.2,0.3,0.4],"
  return {
    "the largest answer": post((particles + (row * 640)[:-1] + "]}").encode()),
    "the issue's 2.5 MB of observations": post(
      (particles + (row * 140_000)[:-1] + "]}").encode()
    ),
    "the most rows": post(
      ('{"instances":[' + (row * 90_000)[:-1] + "]}").encode()
    ),
    "a full body of rows": _full('{"instances":[', "[0,0,0,0],"),
    "a full body of objects": _full('{"instances":[', '{"":0},'),
    "the most objects": _full('{"instances":[', '{"a":0.12345678},'),
    "the most lists": _full('{"instances":[', "[0.5,1.5,2.5,3],"),
    "a full body of numbers": _full('{"instances":[[', "0.5,", "]]}"),
    "a full body of texts": _full(
      '{"signature_name":"action_bytes","instances":[', '"a",'
    ),
    "a full body of one text": post(
      b'{"instances":"' + b"x" * (8 * _MIB - 20) + b'"}'
    ),
  }


class _Watch:
  """Asks for /healthz, and sends small requests, until it is told to stop."""

  def __init__(self, server: Served):
    self.asked = self.lost = 0
    self.slowest = 0.0
    self._server = server
    self._stop = threading.Event()

  def __call__(self) -> None:
    while not self._stop.is_set():
      start = time.monotonic()
      answer = self._server.get("/healthz", _HEALTH_SECONDS)
      self.lost += answer.status != 200
      self.slowest = max(self.slowest, time.monotonic() - start)
      # Refused or too late, but told: nothing is lost.
      self.lost += self._server.raw(_GOOD).status not in (200, 503, 504)
      self.asked += 2
      time.sleep(0.02)

  def stop(self) -> None:
    self._stop.set()


def _hold(server: Served, content: bytes, seconds: float) -> None:
  """Asks for much and takes none of it."""
  with contextlib.suppress(OSError), socket.socket() as connection:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", server.port))
    connection.sendall(content)
    time.sleep(seconds)


def worst_mix(server: Served, seconds: float) -> List[Row]:
  """The heaviest requests from many clients at a time."""
  server.raw(_GOOD)
  before = server.memory("VmRSS")
  requests = list(_heavy().values())
  answers = [server.raw(request) for request in requests]  # each kind once
  bound = Limits().memory_bytes / _MIB
  end, watch = time.monotonic() + seconds, _Watch(server)
  tried, silent = [len(requests)], [_silent(answers)]

  def attack(index: int) -> None:
    chance = random.Random(index)
    while time.monotonic() < end:
      if chance.random() < 0.2:
        _hold(server, requests[0], chance.uniform(0, 3))
      else:
        silent.append(_silent([server.raw(chance.choice(requests), 60)]))
      tried.append(1)

  with concurrent.futures.ThreadPoolExecutor(_CLIENTS + 1) as threads:
    watching = threads.submit(watch)
    list(threads.map(attack, range(_CLIENTS)))
    watch.stop()
    watching.result()
  peak = server.memory() - before
  note = (
    f"memory rose by {peak:.0f} MiB at most, bound {bound:.0f} MiB;"
    f" {before:.0f} MiB before"
  )
  health = f"asked {watch.asked} times, slowest /healthz {watch.slowest:.2f} s"
  return [
    Row(
      "the heaviest requests, 16 clients",
      sum(tried),
      int(peak > bound) + (not server.alive()),
      sum(silent),
      server.tracebacks(),
      note,
    ),
    Row(
      "/healthz and small requests meanwhile",
      watch.asked,
      watch.lost,
      0,
      server.tracebacks(),
      health,
    ),
  ]


def _silent(answers) -> int:
  """Answers that are neither given nor refused in a line."""
  return sum(
    answer.status not in (200, 400, 413, 503, 504)
    or (answer.status != 200 and not answer.error)
    for answer in answers
  )


def rows(requests: int = 1000, seconds: float = 30.0) -> List[Row]:
  """Does all of it.

  Args:
    requests: how many malformed ones.
    seconds: of the worst mix.

  Returns:
    The lines of the table.
  """
  with tempfile.TemporaryDirectory() as folder:
    directory = pathlib.Path(folder, "policies")
    publish(directory)
    with serving(directory) as server:
      found = [malformed(server, requests), stopping(server, 40)]
    with serving(directory) as server:
      found += worst_mix(server, seconds)
    with serving(directory, "--poll", "0.1") as server:
      found += damaged_exports.while_it_runs(server, directory, _GOOD)
    found.append(damaged_exports.at_its_start(directory, _GOOD))
    found.append(damaged_exports.played(directory))
  return found


def main() -> int:
  """Prints the table; 1 if anything was lost, silent or a traceback."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--requests", type=int, default=1000)
  parser.add_argument("--seconds", type=float, default=30.0)
  args = parser.parse_args()
  found = rows(args.requests, args.seconds)
  show(found)
  return int(any(row.lost or row.silent or row.tracebacks for row in found))


if __name__ == "__main__":
  sys.exit(main())
