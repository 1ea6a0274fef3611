"""What is no HTTP, or not ours, gets one line and leaves no traceback."""

import contextlib
import json
import socket

import pytest
import serving_fixtures

_POST = b"POST /v1/models/policy:predict HTTP/1.1\r\nHost: x\r\n"
_MALFORMED = {
  "garbage": b"\x00\x01\x02\xff" * 8 + b"\r\n\r\n",
  "method": b"GE T /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
  "version": b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
  "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
  "two lengths": _POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
  "length": _POST + b"Content-Length: x\r\n\r\n{}",
  "negative": _POST + b"Content-Length: -1\r\n\r\n{}",
  "smuggled": _POST
  + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
  "chunk": _POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
  "long line": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
  "long header": b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
  "many headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
  + b"".join(b"X%d: y\r\n" % n for n in range(500))
  + b"\r\n",
  "header name": b"GET /healthz HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n",
  "null": b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
  "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
}


def _ask(server, content):
  """(status, body) of what is sent as it is."""
  received = b""
  with (
    contextlib.closing(
      socket.create_connection(("127.0.0.1", server.port), timeout=20)
    ) as connection,
    contextlib.suppress(ConnectionError),
  ):
    connection.sendall(content)
    while chunk := connection.recv(65536):
      received += chunk
  head, _, body = received.partition(b"\r\n\r\n")
  return int(head.split()[1]), body


@pytest.mark.parametrize("kind", _MALFORMED)
def test_what_is_no_http_gets_one_line(server, caplog, capfd, kind):
  status, body = _ask(server, _MALFORMED[kind])
  assert status == 400
  message = json.loads(body)["error"]
  assert "\n" not in message and 20 < len(message) < 300
  assert not caplog.records and "Traceback" not in capfd.readouterr().err
  assert server.request("GET", "/healthz")[0] == 200
  assert server.log == ["version 320 is served"]


def test_bytes_in_addresses_that_are_no_text_are_told(server, caplog):
  for path in (b"/%ff%fe", b"/a%0ab%00", "/é".encode(), b"/\xff"):
    head = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    status, body = _ask(server, head)
    assert status in (400, 404), (path, body)
    message = json.loads(body)["error"]
    assert message and message.isprintable()
  assert not caplog.records
  assert server.log == ["version 320 is served"]


def test_who_leaves_in_the_middle_is_not_our_fault(server, caplog):
  for content in (
    _POST + b"Content-Length: 1000\r\n\r\n{",
    _POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    _POST,
    b"",
  ):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
      connection.sendall(content)
  assert server.request("GET", "/healthz")[0] == 200
  assert not caplog.records
  assert server.log == ["version 320 is served"]


def test_malformed_requests_are_counted(run):
  with serving_fixtures.serving(run / "export") as server:
    _ask(server, _MALFORMED["garbage"])
    text = server.request("GET", "/metrics")[1].decode()
    assert 'mmdrl_requests_total{code="400"} 1' in text


def test_a_body_that_is_not_packed_as_it_says_is_told_why(server):
  status, answer = server.request(
    "POST",
    "/v1/models/policy:predict",
    b"no gzip at all",
    {"Content-Encoding": "gzip"},
  )[:2]
  assert status == 400
  assert "cannot be read: Can not decode content-encoding: gzip" in str(answer)
