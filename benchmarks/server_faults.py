"""Attacks a real `mmdrl serve`: is anything lost, silent, or a traceback?

  python benchmarks/server_faults.py [--requests 1000] [--seconds 30]

- Malformed requests of every kind in malformed_requests.py, each of which must
  get its status and one line, and connections that stop in the middle, which
  must be cut.
- The worst mix of requests that the limits allow, from many clients at a time,
  and connections that send requests without end and take no answer, in plain
  and by TLS:
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
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import List, Tuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401  (before TensorFlow: Keras 2)

# isort: split

import damaged_exports
import heavy_requests
import malformed_requests
import tensorflow as tf
from malformed_requests import post
from pieces import Found, Known
from served import Row, Served, serving, show
from tf_agents.specs import tensor_spec

from tf_mmdrl import serving as exports
from tf_mmdrl.networks import ParticleNetwork
from tf_mmdrl.serving import formats
from tf_mmdrl.serving.limits import Limits

_GOOD = post(b'{"instances": [[0.1, 0.2, 0.3, 0.4]]}')


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


def make_certificate(directory: pathlib.Path) -> pathlib.Path:
  """A certificate and its key in one file, by openssl."""
  both = directory / "both.pem"
  command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
  command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=x"]
  parts = [directory / "certificate.pem", directory / "key.pem"]
  files = ["-out", str(parts[0]), "-keyout", str(parts[1])]
  subprocess.run([*command, *files], check=True, capture_output=True)
  both.touch(mode=0o600)
  both.write_text("".join(part.read_text() for part in parts))
  return both


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
      got = f"{answer.status}: {answer.body[:200]!r}"
      print(f"silent: {request.content[:200]!r}: {got}")
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


def attack(requests: int, seconds: float, known: Known) -> Found:
  """Does all of it, server by server.

  Args:
    requests: how many malformed ones.
    seconds: of the worst mix.
    known: what has been done already.

  Yields:
    What was done, and its lines of the table.
  """
  with tempfile.TemporaryDirectory() as folder:
    directory = pathlib.Path(folder, "policies")
    publish(directory)
    if "malformed" not in known:
      with serving(directory) as server:
        yield "malformed", [malformed(server, requests), stopping(server, 40)]
    if "mix" not in known:
      with serving(directory, "--games", "CartPole-v1") as server:
        yield "mix", heavy_requests.worst_mix(server, seconds)
    if "mix by TLS" not in known:
      certificate = make_certificate(pathlib.Path(folder))
      with serving(directory, "--certificate", str(certificate)) as server:
        yield "mix by TLS", heavy_requests.worst_mix(server, seconds)
    if "damages" not in known:
      with serving(directory, "--poll", "0.1") as server:
        found = damaged_exports.while_it_runs(server, directory, _GOOD)
      yield "damages", found
    if "damages at its start" not in known:
      found = [damaged_exports.at_its_start(directory, _GOOD)]
      yield "damages at its start", found
    if "damages, played" not in known:
      yield "damages, played", [damaged_exports.played(directory)]


def rows(known: Known) -> List[Row]:
  """The lines of the table."""
  return [Row(*row) for found in known.values() for row in found]


def main() -> int:
  """Prints the table; 1 if anything was lost, silent or a traceback."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--requests", type=int, default=1000)
  parser.add_argument("--seconds", type=float, default=30.0)
  args = parser.parse_args()
  known: Known = {}
  for name, result in attack(args.requests, args.seconds, known):
    known[name] = result
  found = rows(known)
  show(found)
  return int(any(row.lost or row.silent or row.tracebacks for row in found))


if __name__ == "__main__":
  sys.exit(main())
