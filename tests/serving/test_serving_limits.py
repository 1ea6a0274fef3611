"""What clients take of the server is bounded, whatever they send."""

import base64
import contextlib
import dataclasses
import http.client
import json
import socket
import threading
import time
import zlib

import numpy as np
import pytest
import serving_fixtures
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl import serving
from tf_mmdrl.networks import ParticleNetwork
from tf_mmdrl.serving.limits import Limits, Place, Refusal, UnderWay

_PATH = "/v1/models/policy:predict"
_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
_STATE = tensor_spec.BoundedTensorSpec([4], tf.float32, -9, 9)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
  """Policies of a CartPole with 50 particles for each of two actions."""
  directory = tmp_path_factory.mktemp("limits")
  net = ParticleNetwork(_STATE, _ACTION, 50, fc_layer_params=(8,))
  net.create_variables()
  serving.publish(net, directory, 1)
  return directory


@pytest.fixture(scope="module")
def small(exported):
  """A server with little room."""
  limits = Limits(
    body_bytes=2**20,
    answer_bytes=2**19,
    pending_bytes=2**20 + 2**19 + 1000,
    connections=8,
    seconds=1.0,
    idle_seconds=3.0,
    batch=16,
  )
  with serving_fixtures.serving(exported, limits=limits) as running:
    yield running


def _connect(server):
  connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
  return contextlib.closing(connection)


def _rows(number, signature="particles"):
  return {"signature_name": signature, "instances": [[1, 2, 3, 4]] * number}


def _raw(body, headers=""):
  head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\n{headers}"
  return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_an_answer_too_large_is_refused_with_the_numbers(small):
  status, answer = small.predict(_rows(20_000))
  assert status == 413
  assert "an answer may have 524288 bytes: 20000 rows" in answer["error"]
  most = int(answer["error"].rpartition("send at most ")[2].split()[0])
  assert 100 < most < 1000
  status, answer = small.predict(_rows(most))
  assert status == 200 and len(answer["predictions"]) == most
  assert small.predict(_rows(most + 1))[0] == 413
  assert small.predict(_rows(2000, "action"))[0] == 200  # smaller rows


def test_a_large_request_runs_in_pieces_with_the_right_answers(small):
  observation = np.random.default_rng(0).normal(size=[77, 4]).round(3)
  whole = {"instances": observation.tolist()}
  status, together = small.predict(whole)
  assert status == 200
  alone = [
    small.predict({"instances": [row]})[1]["predictions"][0]
    for row in whole["instances"]
  ]
  found = [row["q_values"] for row in together["predictions"]]
  np.testing.assert_allclose(found, [r["q_values"] for r in alone], atol=1e-6)
  text = small.request("GET", "/metrics")[1].decode()
  (line,) = [x for x in text.splitlines() if 'rows_bucket{le="16"}' in x]
  assert int(line.split()[1]) >= 77


def test_health_answers_while_large_json_is_read_and_written(exported):
  limits = Limits(seconds=60.0)
  body = json.dumps(_rows(2200)).encode()
  padded = body + b" " * (Limits.body_bytes - len(body))
  with serving_fixtures.serving(exported, limits=limits) as server:
    done = threading.Event()

    def ask():
      assert server.predict(padded)[0] == 200
      done.set()

    thread = threading.Thread(target=ask)
    thread.start()
    slowest, asked = 0.0, 0
    while not done.is_set() and thread.is_alive():
      start = time.monotonic()
      assert server.request("GET", "/healthz")[0] == 200
      slowest = max(slowest, time.monotonic() - start)
      asked += 1
    thread.join()
    assert done.is_set() and asked > 3 and slowest < 2


def test_large_json_leaves_the_event_loop(exported, monkeypatch):
  threads = {}

  def watch(name):
    function = getattr(serving_fixtures.servers.rest, name)

    def watched(*args, **options):
      threads.setdefault(name, []).append(threading.current_thread().name)
      return function(*args, **options)

    monkeypatch.setattr(serving_fixtures.servers.rest, name, watched)

  watch("decode")
  watch("encode")
  with serving_fixtures.serving(exported) as server:
    assert server.predict(_rows(1))[0] == 200
    assert (
      server.predict(json.dumps(_rows(30)).encode() + b" " * 70_000)[0] == 200
    )
  for name in ("decode", "encode"):
    loop, coder = threads[name]
    assert loop != coder and "ThreadPoolExecutor" in coder, name


def test_bytes_under_way_are_bounded_until_answers_are_taken(small):
  """A body that is not there yet counts, and so does one without a length."""
  chunked = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked"
  with _connect(small) as one:
    one.sendall(chunked.encode() + b"\r\n\r\n")
    time.sleep(0.1)
    status, answer = small.predict(_rows(100))
    assert status == 200  # there is room for one and a half
    with _connect(small) as two:
      two.sendall(chunked.encode() + b"\r\n\r\n")
      said = two.recv(4096)
      assert said.startswith(b"HTTP/1.1 503") and b"Retry-After" in said
      assert b"take 1048576 of 1573864 bytes, and this one 1048576" in said
    assert small.request("GET", "/healthz")[0] == 200
    assert one.recv(4096).startswith(b"HTTP/1.1 408")
  assert small.predict(_rows(100))[0] == 200


def _give_up_reading(server, body):
  """A connection whose client asks and does not read."""
  connection = socket.socket()
  connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
  connection.settimeout(20)
  connection.connect(("127.0.0.1", server.port))
  connection.sendall(body)
  return connection


def test_who_does_not_take_an_answer_is_cut_and_gives_its_place_back(exported):
  limits = Limits(
    answer_bytes=2**24, pending_bytes=20 * 2**20, seconds=3, idle_seconds=60
  )
  wanted = _rows(4000)  # more than the system keeps for a socket
  body = json.dumps(wanted).encode()
  with serving_fixtures.serving(exported, limits=limits) as server:
    with contextlib.closing(_give_up_reading(server, _raw(body))):
      status, answer = _until(503, server, wanted)
      assert status == 503 and "under way" in answer["error"]
      assert _until(200, server, wanted)[0] == 200
    assert server.log == ["version 1 is served"]


def _until(status, server, wanted):
  """The first answer of that status, or the last one of a minute."""
  end = time.monotonic() + 60
  while True:
    answer = server.predict(wanted)
    if answer[0] == status or time.monotonic() > end:
      return answer
    time.sleep(0.1)


def test_too_many_connections_are_closed_at_once(small):
  with contextlib.ExitStack() as stack:
    for _ in range(8):
      stack.enter_context(_connect(small))
    time.sleep(0.1)
    with _connect(small) as one_more:
      said = one_more.recv(4096)
      assert said.startswith(b"HTTP/1.1 503") and b"Retry-After" in said
      with contextlib.suppress(ConnectionError):
        one_more.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert one_more.recv(4096) == b""
  time.sleep(0.1)
  assert small.request("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
  "before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_headers_that_come_byte_by_byte_are_cut(small, before):
  """Also those of a second request; long before an idle connection is."""
  with _connect(small) as connection:
    if before:
      connection.sendall(before)
      assert b"ok" in connection.recv(4096)
    start = time.monotonic()
    connection.settimeout(0.2)
    for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 100:
      with contextlib.suppress(TimeoutError, ConnectionError):
        connection.sendall(bytes([byte]))
        if not connection.recv(4096):
          break
      if time.monotonic() - start > 2.5:
        break
    assert 0.9 < time.monotonic() - start < 2.4


def test_a_connection_that_sends_nothing_is_cut_as_slow_headers_are(small):
  with _connect(small) as connection:
    start = time.monotonic()
    assert connection.recv(4096) == b""
    assert 0.9 < time.monotonic() - start < 2.4


def test_a_kept_connection_waits_longer_than_headers_may_take(small):
  with _connect(small) as connection:
    for _ in range(2):
      connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
      assert b"ok" in connection.recv(4096)
      time.sleep(1.3)  # more than the second for headers


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_bodies_are_read_and_garbage_is_told(small, encoding):
  body = json.dumps(_rows(1)).encode()
  bits = 31 if encoding == "gzip" else 15
  maker = zlib.compressobj(wbits=bits)
  good = maker.compress(body) + maker.flush()
  headers = {"Content-Encoding": encoding}
  assert small.request("POST", _PATH, good, headers)[0] == 200
  for bad in (
    b"\x1f\x8b" + bytes(30),
    b"garbage",
    good[: len(good) // 2],
    body,
  ):
    status, answer = small.request("POST", _PATH, bad, headers)
    assert status == 400, (bad, answer)
    assert "\n" not in answer["error"]
  assert small.log == ["version 1 is served"]


def test_who_asks_first_is_told_to_send_the_body(small):
  body = json.dumps(_rows(1)).encode()
  head = _raw(body, "Expect: 100-continue\r\n")[: -len(body)]
  with _connect(small) as connection:
    for _ in range(2):
      connection.sendall(head)
      assert connection.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
      connection.sendall(body)
      assert _status(connection) == 200
    large = head.replace(b"Content-Length: ", b"Content-Length: 9999999")
    connection.sendall(large)
    assert _status(connection) == 413  # before it is sent
  with _connect(small) as connection:
    connection.sendall(head.replace(b"HTTP/1.1", b"HTTP/1.0") + body)
    assert connection.recv(4096).startswith(b"HTTP/1.0 200 OK")


def _status(connection):
  """Of the answer, all of which is read."""
  with http.client.HTTPResponse(connection) as response:
    response.begin()
    response.read()
    return response.status


def test_a_packed_body_is_counted_as_the_largest_that_it_may_become(small):
  """Two of them are more than this server has room for."""
  body = zlib.compress(json.dumps(_rows(1)).encode())
  request = _raw(body, "Content-Encoding: deflate\r\n")
  with _connect(small) as first, _connect(small) as second:
    first.sendall(request[:-1])
    time.sleep(0.1)
    second.sendall(request)
    assert _status(second) == 503
    first.sendall(request[-1:])
    assert _status(first) == 200


def test_a_small_body_that_unpacks_to_a_large_one_is_refused(small):
  maker = zlib.compressobj(wbits=31)
  bomb = maker.compress(bytes(50 * 2**20)) + maker.flush()
  headers = {"Content-Encoding": "gzip"}
  status, answer = small.request("POST", _PATH, bomb, headers)
  assert status == 413 and "1048576 bytes" in answer["error"]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_bytes_that_are_no_numbers_are_told(small, wrong):
  rows = [[0.0, 1.0, 2.0, 3.0], [0.0, wrong, 2.0, 3.0]]
  texts = [
    base64.b64encode(np.array(row, np.float32).tobytes()).decode()
    for row in rows
  ]
  body = {
    "signature_name": "action_bytes",
    "instances": [{"b64": text} for text in texts],
  }
  status, answer = small.predict(body)
  assert status == 400
  assert answer["error"] == "observation_bytes must hold finite numbers"
  body["instances"].pop()
  assert small.predict(body)[0] == 200


def test_places_are_counted_and_given_back():
  everything = UnderWay(Limits(concurrent=1, pending_bytes=10))
  one, two = Place(everything), Place(everything)
  one.enter()
  one.take(10)
  with pytest.raises(Refusal, match="too many requests"):
    two.enter()
  with pytest.raises(Refusal, match="take 10 of 10 bytes, and this one 1 more"):
    two.take(1)
  two.leave()
  assert (everything.count, everything.bytes) == (1, 10)
  one.leave()
  one.leave()
  assert (everything.count, everything.bytes) == (0, 0)


def test_the_bound_of_memory_follows_from_the_limits():
  limits = Limits(body_bytes=10, pending_bytes=100, connections=0)
  assert limits.memory_bytes == 4 * 100 + 40 * 10
  more = dataclasses.replace(limits, connections=3)
  assert more.memory_bytes == limits.memory_bytes + 3 * 512 * 2**10
  tls = dataclasses.replace(more, tls=True)
  assert tls.memory_bytes == limits.memory_bytes + 3 * 640 * 2**10
  assert Limits().memory_bytes == 832 * 2**20


def _answers(connection):
  """All that comes, up to the end of the connection."""
  received = b""
  with contextlib.suppress(ConnectionError):
    while chunk := connection.recv(2**16):
      received += chunk
  return received


@pytest.mark.parametrize("size", [9_000, 14_000])
def test_headers_may_be_long(small, size):
  lines = "".join(f"X{n}: {'y' * 490}\r\n" for n in range(size // 500))
  with _connect(small) as connection:
    head = f"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}"
    connection.sendall(f"{head}\r\n".encode())
    assert _answers(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("pause", [0, 0.05])
@pytest.mark.parametrize(
  "before", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_headers_without_end_are_refused(small, before, pause):
  """Each line is short enough; an hour of them is not."""
  with _connect(small) as connection:
    with contextlib.suppress(ConnectionError):
      connection.sendall(before + b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
      for number in range(60):
        connection.sendall(b"X%d: %s\r\n" % (number, b"y" * 4000))
        time.sleep(pause if number < 8 else 0)
    received = _answers(connection)
  assert received.count(b"HTTP/1.1 200") == bool(before)
  head, _, body = received.rpartition(b"\r\n\r\n")
  assert b"HTTP/1.1 431" in head
  assert json.loads(body) == {
    "error": "a request may have 16384 bytes of headers"
  }
  assert small.request("GET", "/healthz")[0] == 200
  counted = small.request("GET", "/metrics")[1].decode()
  assert 'mmdrl_requests_total{code="431"}' in counted


def test_requests_that_wait_in_line_are_few_and_all_answered(small):
  one = b"POST %s HTTP/1.1\r\nHost: x\r\n" % _PATH.encode()
  one += b"".join(b"X%d: y\r\n" % number for number in range(50))
  body = json.dumps(_rows(1, "action")).encode()
  one += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
  with _connect(small) as connection:
    sender = threading.Thread(target=connection.sendall, args=(one * 300,))
    sender.start()
    received, most = b"", 0
    while received.count(b'{"predictions"') < 300:
      for protocol in small.connections():
        most = max(most, len(protocol._messages))
      chunk = connection.recv(2**16)
      assert chunk, received[-300:]
      received += chunk
    sender.join()
  assert received.count(b"HTTP/1.1 200") == 300
  assert 1 <= most <= 3  # aiohttp's own would be 32


def test_asyncio_holds_little_for_a_connection(small):
  with _connect(small) as connection:
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert connection.recv(2**16)
    (protocol,) = small.connections()
    assert protocol.transport.max_size == 2**15
    assert protocol.transport.get_write_buffer_limits()[1] == 2**16


def test_who_closes_only_its_own_side_gets_the_answer(small):
  body = json.dumps(_rows(2, "action")).encode()
  for content in (_raw(body), b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
    with _connect(small) as connection:
      connection.sendall(content)
      connection.shutdown(socket.SHUT_WR)
      assert _answers(connection).startswith(b"HTTP/1.1 200")
  # Without all of its body, or its headers, there is nothing to answer.
  for content in (_raw(body)[:-1], b"GET /healthz HTTP/1.1\r\n", b""):
    with _connect(small) as connection:
      connection.sendall(content)
      connection.shutdown(socket.SHUT_WR)
      assert b"200" not in _answers(connection)
  assert small.request("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
  "header, status",
  [
    ("Content-Encoding: gzip, gzip", 415),
    ("Content-Encoding: aes128gcm", 415),
    ("Content-Encoding: identity", 200),
    ("Transfer-Encoding: gzip, chunked", 501),
    ("Transfer-Encoding: chunked", 200),
  ],
)
def test_a_body_is_not_read_as_if_it_were_not_encoded(small, header, status):
  body = json.dumps(_rows(1, "action")).encode()
  with _connect(small) as connection:
    head = f"POST {_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}"
    if header.startswith("Transfer"):
      sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
      connection.sendall(f"{head}\r\n\r\n".encode() + sent)
    else:
      head += f"\r\nContent-Length: {len(body)}\r\n\r\n"
      connection.sendall(head.encode() + body)
    received = _answers(connection)
  assert int(received.split()[1]) == status, received
  if status != 200:
    assert "got" in json.loads(received.rpartition(b"\r\n\r\n")[2])["error"]
