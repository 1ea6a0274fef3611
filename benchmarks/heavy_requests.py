"""The worst mix of requests that a server's limits allow, and a crowd."""

import concurrent.futures
import contextlib
import json
import random
import socket
import ssl
import threading
import time
from typing import Dict, List

from malformed_requests import post
from served import Row, Served

from tf_mmdrl.serving.limits import Limits

_GOOD = post(b'{"instances": [[0.1, 0.2, 0.3, 0.4]]}')
_AS_JSON = "Content-Type: application/json\r\n"
_MIB = 2**20
_CLIENTS = 16
_CROWD = 400  # connections besides
_HEALTH_SECONDS = 5.0  # /healthz must answer within


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
  """Asks for /healthz, and sends small requests, until it is told to stop.

  Attributes:
    lost: answers that did not come, or too late for the server's own fault:
      time in which it waited for a CPU that others had does not count.
    slowest: seconds until /healthz had answered.
    starved: of these, how many the server waited for a CPU.
  """

  def __init__(self, server: Served):
    self._server = server
    self._stop = threading.Event()
    self.lost = self.asked = 0
    self.slowest = self.starved = 0.0

  def __call__(self) -> None:
    while not self._stop.is_set():
      start, waited = time.monotonic(), self._server.waited()
      health = self._server.get("/healthz")
      passed = time.monotonic() - start
      starved = self._server.waited() - waited
      late = passed - starved > _HEALTH_SECONDS
      self.lost += health.status != 200 or late
      if passed > self.slowest:
        self.slowest, self.starved = passed, starved
      # Refused or too late, but told: nothing is lost.
      self.lost += self._server.raw(_GOOD).status not in (200, 408, 503, 504)
      self.asked += 2
      time.sleep(0.02)

  def stop(self) -> None:
    self._stop.set()


def _play(server: Served, chance: random.Random) -> int:
  """Begins a game, of which others may take the place, and takes steps in it.

  Returns:
    How many answers were neither given nor refused in a line.
  """
  begin = json.dumps({"seed": chance.randrange(2**31)}).encode()
  begun = server.raw(post(begin, _AS_JSON, "/games"), 60)
  answers = [begun]
  if begun.status == 200:
    place = f"/games/{json.loads(begun.body)['session']}"
    step = post(b'{"action": 0}', _AS_JSON, place)
    answers += [server.raw(step, 60) for _ in range(20)]
  return _silent(answers, gone=404)


def _hold(server: Served, content: bytes, seconds: float) -> None:
  """Asks for much and takes none of it."""
  with (
    contextlib.suppress(OSError),
    server.connect(20.0, receive=4096) as connection,
  ):
    connection.sendall(content)
    time.sleep(seconds)


class _Crowd:
  """Clients that send requests without end and take no answer.

  They show no token, and would be the ones to have none.
  """

  def __init__(self, server: Served, number: int):
    self._server = server
    lines = "".join(f"X{n}: {'y' * 200}\r\n" for n in range(60))
    head = f"GET /metrics HTTP/1.1\r\nHost: x\r\n{lines}\r\n"
    self._content = head.encode() * 20
    self._number = number
    self._over = threading.Event()
    self.made = 0

  def __call__(self) -> None:
    with contextlib.ExitStack() as stack:
      sent: Dict[socket.socket, int] = {}
      while not self._over.wait(0.01):
        if len(sent) < self._number:
          with contextlib.suppress(OSError):
            connection = self._server.connect(5.0, receive=4096)
            stack.enter_context(connection).setblocking(False)
            sent[connection] = 0
            self.made += 1
        for connection in [*sent]:
          self._send(connection, sent)

  def _send(self, connection: socket.socket, sent: Dict) -> None:
    try:
      rest = self._content[sent[connection] % len(self._content) :]
      sent[connection] += connection.send(rest[: 2**16])
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
      pass  # the server reads no more, as it should
    except OSError:  # it was cut
      connection.close()
      del sent[connection]

  def leave(self) -> None:
    self._over.set()


def worst_mix(server: Served, seconds: float) -> List[Row]:
  """The heaviest requests from many clients at a time, and a crowd.

  A server that plays is asked for games as well.
  """
  server.raw(_GOOD)
  plays = server.get("/games").status == 200
  if plays:  # what games need is loaded with the first
    _play(server, random.Random(0))
  before = server.memory("VmRSS")
  requests = list(_heavy().values())
  answers = [server.raw(request) for request in requests]  # each kind once
  bound = Limits(tls=server.tls).memory_bytes / _MIB
  crowd = _Crowd(server, _CROWD)
  end, watch = time.monotonic() + seconds, _Watch(server)
  tried, silent = [len(requests)], [_silent(answers)]

  def attack(index: int) -> None:
    chance = random.Random(index)
    while time.monotonic() < end:
      if chance.random() < 0.2:
        _hold(server, requests[0], chance.uniform(0, 3))
      elif plays and chance.random() < 0.25:
        silent.append(_play(server, chance))
      else:
        silent.append(_silent([server.raw(chance.choice(requests), 60)]))
      tried.append(1)

  with concurrent.futures.ThreadPoolExecutor(_CLIENTS + 2) as threads:
    watching, crowding = threads.submit(watch), threads.submit(crowd)
    list(threads.map(attack, range(_CLIENTS)))
    watch.stop()
    crowd.leave()
    watching.result()
    crowding.result()
  peak = server.memory() - before
  note = (
    f"memory rose by {peak:.0f} MiB at most, bound {bound:.0f} MiB;"
    f" {before:.0f} MiB before; {crowd.made} connections took no answer"
  )
  how = "by TLS" if server.tls else "and games" if plays else "in plain"
  health = (
    f"slowest /healthz {watch.slowest:.2f} s, of which the server waited for a"
    f" CPU for {watch.starved:.2f} s"
  )
  return [
    Row(
      f"the heaviest requests {how}",
      sum(tried),
      int(peak > bound) + (not server.alive()),
      sum(silent),
      server.tracebacks(),
      note,
    ),
    Row(
      f"/healthz and small requests {how}",
      watch.asked,
      watch.lost,
      0,
      server.tracebacks(),
      health,
    ),
  ]


def _silent(answers, gone: int = 400) -> int:
  """Answers that are neither given nor refused in a line.

  Args:
    answers: the answers.
    gone: the status of what others have taken the place of, if that may be.
  """
  return sum(
    answer.status not in (200, 400, 408, 413, 503, 504, gone)
    or (answer.status != 200 and not answer.error)
    for answer in answers
  )
