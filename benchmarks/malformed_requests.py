"""Requests that a server must refuse, of many kinds, as they go over the wire.

Each kind is a function of a `random.Random` that returns a request and the
statuses that it may get. Chance chooses sizes, places and bytes.
"""

import base64
import gzip
import json
import random
from typing import Callable, Dict, NamedTuple, Set

import numpy as np

_PREDICT = "/v1/models/policy:predict"
_ROW = [0.1, 0.2, 0.3, 0.4]


class Malformed(NamedTuple):
  """A request.

  Attributes:
    content: all of its bytes.
    statuses: what it may be answered with.
  """

  content: bytes
  statuses: Set[int]


Kind = Callable[[random.Random], Malformed]


def post(body: bytes, headers: str = "", path: str = _PREDICT) -> bytes:
  """A whole POST request that ends its connection."""
  head = (
    f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}"
    f"Content-Length: {len(body)}\r\n\r\n"
  )
  return head.encode() + body


def _get(path: str, method: str = "GET", headers: str = "") -> bytes:
  head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
  return f"{head}{headers}\r\n".encode()


def _json(content: object) -> Malformed:
  return Malformed(post(json.dumps(content).encode()), {400})


def _bytes(row: object) -> Malformed:
  text = row if isinstance(row, str) else base64.b64encode(row).decode()
  instances = [{"b64": text}]
  return _json({"signature_name": "action_bytes", "instances": instances})


def _http(content: bytes) -> Malformed:
  return Malformed(content, {400})


def _cut(chance: random.Random) -> Malformed:
  """Valid JSON without its end."""
  whole = json.dumps({"instances": [_ROW] * chance.randint(1, 50)}).encode()
  return Malformed(post(whole[: chance.randrange(len(whole))]), {400})


def _spoilt(chance: random.Random) -> Malformed:
  """Valid JSON with a byte that is no text."""
  whole = bytearray(json.dumps({"instances": [_ROW] * 9}).encode())
  whole[chance.randrange(len(whole))] = chance.randrange(0x80, 0x100)
  return Malformed(post(bytes(whole)), {400})


def _ragged(chance: random.Random) -> Malformed:
  size = chance.choice([0, 1, 3, 5, 100])
  rows = [_ROW] * chance.randint(0, 20) + [_ROW[:1] * size]
  chance.shuffle(rows)
  return _json({"instances": rows})


def _no_number(chance: random.Random) -> Malformed:
  wrong = chance.choice(["x", None, {}, [], 1e300, 10**40, [1.0], {"b64": ""}])
  row = list(_ROW)
  row[chance.randrange(4)] = wrong
  return _json({"instances": [_ROW, row]})


def _no_finite_bytes(chance: random.Random) -> Malformed:
  row = np.array(_ROW, np.float32)
  row[chance.randrange(4)] = chance.choice([np.nan, np.inf, -np.inf])
  return _bytes(row.tobytes())


def _garbage(chance: random.Random) -> Malformed:
  return _http(chance.randbytes(chance.randint(1, 400)) + b"\r\n\r\n")


def _packed(chance: random.Random) -> Malformed:
  """Bodies that are not what Content-Encoding says."""
  good = gzip.compress(json.dumps({"instances": [_ROW]}).encode())
  body = chance.choice(
    [b"\x1f\x8b" + chance.randbytes(40), good[:20], chance.randbytes(50)]
  )
  name = chance.choice(["gzip", "deflate"])
  return Malformed(post(body, f"Content-Encoding: {name}\r\n"), {400})


def _head(lines: bytes, body: bytes = b"") -> Malformed:
  start = f"POST {_PREDICT} HTTP/1.1\r\n".encode()
  return _http(start + lines + b"\r\n\r\n" + body)


def _level(chance: random.Random) -> Malformed:
  level = chance.choice([0, -1, 1.5, 1e9])
  instance = {"observation": _ROW, "level": level}
  return _json({"signature_name": "risk", "instances": [instance]})


def _too_many_rows(chance: random.Random) -> Malformed:
  rows = ",".join(["[0,0,0,0]"] * chance.randint(10_000, 200_000))
  body = f'{{"signature_name":"particles","instances":[{rows}]}}'
  return Malformed(post(body.encode()), {413})


def _too_long(chance: random.Random) -> Malformed:
  head = f"POST {_PREDICT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
  length = chance.randint(2**23 + 1, 2**60)
  return Malformed(f"{head}Content-Length: {length}\r\n\r\n".encode(), {413})


def _address(chance: random.Random) -> Malformed:
  path = chance.choice(
    [
      "/v1",
      "/v1/models/other",
      "/v1/models/policy/versions/0_1",
      "/v1/models/policy/versions/01",
      "/v1/models/policy/versions/+1",
      "/v1/models/policy/versions/1e0",
      "/v1/models/policy/versions/%D9%A1",
      "/v1/models/policy/../../etc/passwd",
      "/v1/models/policy/versions/" + "9" * 5000,
      "/%ff%fe%00%0a",
      f"/{chance.random()}",
    ]
  )
  return Malformed(_get(path), {404})


KINDS: Dict[str, Kind] = {
  "cut JSON": _cut,
  "spoilt JSON": _spoilt,
  "empty body": lambda chance: Malformed(post(b""), {400}),
  "no object": lambda chance: _json(chance.choice([[], 1, "x", None])),
  "unknown key": lambda chance: _json({"x" * chance.randint(1, 10**5): 1}),
  "both forms": lambda chance: _json({"instances": [_ROW], "inputs": [_ROW]}),
  "no rows": lambda chance: _json({"instances": []}),
  "deep": lambda chance: Malformed(
    post(b"[" * chance.randint(2000, 10**5)), {400}
  ),
  "NaN": lambda chance: Malformed(post(b'{"instances": [[NaN,0,0,0]]}'), {400}),
  "ragged": _ragged,
  "no number": _no_number,
  "signature": lambda chance: _json(
    {"signature_name": chance.choice(["x", 1, None]), "instances": [_ROW]}
  ),
  "level": _level,
  "no base64": lambda chance: _bytes("*" * chance.randint(1, 99)),
  "bytes": lambda chance: _bytes(chance.randbytes(chance.randint(17, 99))),
  "NaN as bytes": _no_finite_bytes,
  "compression": _packed,
  "encoding": lambda chance: Malformed(
    post(
      b"{}",
      f"Content-Encoding: {chance.choice(['aes128gcm', 'gzip, gzip'])}\r\n",
    ),
    {415},
  ),
  "transfer": lambda chance: Malformed(
    _get(_PREDICT, "POST", "Transfer-Encoding: gzip, chunked\r\n")
    + b"0\r\n\r\n",
    {501},
  ),
  "bytes of headers": lambda chance: Malformed(
    _get(
      "/healthz", headers="".join(f"X{n}: {'y' * 8000}\r\n" for n in range(9))
    ),
    {400, 431},
  ),
  "too many rows": _too_many_rows,
  "too long": _too_long,
  "address": _address,
  "method": lambda chance: Malformed(
    _get(_PREDICT, chance.choice(["GET", "PUT", "DELETE", "PATCH"])),
    {405},
  ),
  "garbage": _garbage,
  "TLS": lambda chance: _http(b"\x16\x03\x01" + chance.randbytes(200)),
  "HTTP version": lambda chance: _http(b"GET / HTTP/9.9\r\nHost: x\r\n\r\n"),
  "no host": lambda chance: _http(b"GET /healthz HTTP/1.1\r\n\r\n"),
  "lengths": lambda chance: _head(
    b"Host: x\r\nContent-Length: 1\r\nContent-Length: 2", b"{}"
  ),
  "no length": lambda chance: _head(b"Host: x\r\nContent-Length: -1", b"{}"),
  "smuggling": lambda chance: _head(
    b"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked", b"{}"
  ),
  "no chunk": lambda chance: _head(
    b"Host: x\r\nTransfer-Encoding: chunked", b"zz\r\n{}\r\n"
  ),
  "long header": lambda chance: _head(b"X: " + b"y" * 20_000),
  "many headers": lambda chance: _head(
    b"\r\n".join(b"X%d: y" % n for n in range(400))
  ),
  "null": lambda chance: _head(b"Host: x\r\nA: \x00"),
}


def make(number: int, seed: int = 0) -> Malformed:
  """The request of a number: each kind in turn, by its own chance."""
  kinds = list(KINDS.values())
  return kinds[number % len(kinds)](random.Random(f"{seed}/{number}"))
