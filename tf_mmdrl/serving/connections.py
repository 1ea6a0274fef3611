"""A connection to the server: who, how many, how long; errors in one line."""

import asyncio
import hmac
from typing import Any, Callable, Dict, Optional

import orjson
from aiohttp import streams, web

from tf_mmdrl.serving import buffers
from tf_mmdrl.serving.limits import Limits

# Bytes of an answer that are given to the system at a time.
_PIECE = 2**18
# Bytes of an answer that never wait: half of where asyncio begins to.
_SMALL = 2**15
_FULL = (
  b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
  b"Connection: close\r\nContent-Length: 0\r\n\r\n"
)
_LONG = (
  b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
  b"Content-Type: application/json\r\nConnection: close\r\n"
  b"Content-Length: %d\r\n\r\n%s"
)


def error(status: int, text: str) -> web.Response:
  """An answer that says in one line what is wrong."""
  headers = {503: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
  # An address can hold anything, also ends of lines and bytes that are no text.
  line = "".join(sign if sign.isprintable() else "?" for sign in text)
  return web.Response(
    body=orjson.dumps({"error": line}),
    status=status,
    headers=headers.get(status),
    content_type="application/json",
  )


async def send(
  request: web.BaseRequest, response: web.Response, seconds: float
) -> web.StreamResponse:
  """Sends an answer; a client that does not take it is cut off.

  Args:
    request: what is answered.
    response: the answer.
    seconds: how long the client may take to read it.

  Returns:
    What was sent.
  """
  transport, protocol = request.transport, request.protocol
  if transport is None:  # the client has left
    return response
  size, clock = response.content_length or 0, None
  # What fits into the buffer of asyncio waits for nobody.
  if size > _SMALL or transport.get_write_buffer_size():
    loop = asyncio.get_running_loop()
    clock = loop.call_later(seconds, transport.abort)
  try:
    return await _write(request, response)
  except ConnectionError:
    return response  # aiohttp finds the same, and ends the connection
  finally:
    if clock is not None:
      clock.cancel()
    assert isinstance(protocol, Connection)
    protocol.ended()


async def _write(
  request: web.BaseRequest, response: web.Response
) -> web.StreamResponse:
  """Large ones go in pieces, because asyncio copies what waits."""
  body = response.body
  if not isinstance(body, bytes) or len(body) <= _PIECE:
    await response.prepare(request)
    await response.write_eof()
    return response
  stream = web.StreamResponse(status=response.status, headers=response.headers)
  stream.content_length = len(body)
  await stream.prepare(request)
  for start in range(0, len(body), _PIECE):
    await stream.write(memoryview(body)[start : start + _PIECE])
  await stream.write_eof()
  return stream


def allowed(authorization: Optional[str], token: str) -> bool:
  """Whether an Authorization header carries the token.

  The comparison takes as long for a token that is nearly right as for any.
  """
  scheme, _, given = (authorization or "").partition(" ")
  shown = given.strip().encode(errors="replace")
  same = hmac.compare_digest(shown, token.encode())
  return same and scheme.lower() == "bearer"


class Connection(web.RequestHandler):
  """aiohttp's, but slow headers are cut, and no client causes a traceback."""

  __slots__ = (
    "_limits",
    "_count",
    "_log",
    "_server",
    "_clock",
    "_busy",
    "_body",
    "_header_bytes",
    "when_made",
  )

  def __init__(
    self,
    server: web.Server,
    limits: Limits,
    *,
    count: Callable[[int], None],
    log: Callable[[str], None],
  ):
    """Waits to be connected.

    Args:
      server: the server whose connection it is.
      limits: what a client may ask for.
      count: told the status of an answer to what was no HTTP.
      log: told of faults that are not the client's.
    """
    super().__init__(
      server,
      loop=asyncio.get_running_loop(),
      access_log=None,  # type: ignore[arg-type]
      keepalive_timeout=limits.idle_seconds,
      lingering_time=1.0,  # to take the rest of a body that was refused
    )
    self._limits = limits
    self._count = count
    self._log = log
    self._server: Optional[web.Server] = server
    self._clock: Optional[asyncio.TimerHandle] = None
    self._busy = False
    self._body: Optional[streams.StreamReader] = None
    self._header_bytes = 0  # of a request whose headers are not whole yet
    buffers.limit(self, self._loop)
    self.when_made: Callable[[], None] = lambda: None

  def connection_made(self, transport: asyncio.BaseTransport) -> None:
    """Begins, unless there are too many."""
    self.when_made()
    assert self._server is not None
    assert isinstance(transport, asyncio.Transport)
    if len(self._server.connections) >= self._limits.connections:
      self._server = None
      self._count(503)
      transport.write(_FULL)
      transport.close()
      return
    buffers.limit_transport(transport)
    super().connection_made(transport)
    self._wait(transport)

  def data_received(self, data: bytes) -> None:
    """Takes bytes; headers that began must be whole in time."""
    if self._server is None:  # refused
      return
    if not self._busy and self._clock is None and self.transport is not None:
      self._wait(self.transport)
    requests, to_body = self._request_count, self._takes_a_body()
    super().data_received(data)
    if self._request_count > requests or to_body:
      self._header_bytes = 0
      return
    self._header_bytes += len(data)
    if self._header_bytes > buffers.HEADER_BYTES:
      self._refuse_headers()

  def eof_received(self) -> Optional[bool]:  # type: ignore[override]
    """A client that sends nothing more may still wait for its answer."""
    waits = bool(self._messages) or self._busy
    is_plain = self.ssl_context is None  # TLS cannot be closed by half
    if waits and is_plain and not self._takes_a_body():
      self.close()  # once the answer is sent
      return True
    return None

  def connection_lost(self, exc: Optional[BaseException]) -> None:
    """Stops the clock of a connection that is gone."""
    self.began(None)
    super().connection_lost(exc)

  def began(self, body: Optional[streams.StreamReader]) -> None:
    """The headers of a request are whole; its body may be on its way."""
    self._busy, self._body = True, body
    if self._clock is not None:
      self._clock.cancel()
      self._clock = None

  def ended(self) -> None:
    """The answer is sent; what comes now are headers."""
    self._busy = False

  def _takes_a_body(self) -> bool:
    """Whether what comes now belongs to a request that has begun."""
    body = self._messages[-1][1] if self._messages else self._body
    return body is not None and not body.is_eof()

  def _refuse_headers(self) -> None:
    """Ends a connection whose headers are too long; nothing else comes of it.

    What waits before them is not answered.
    """
    transport, self._server = self.transport, None
    if transport is not None:
      self._count(431)
      body = b'{"error":"a request may have %d bytes of headers"}'
      body %= buffers.HEADER_BYTES
      if not self._busy:
        transport.write(_LONG % (len(body), body))
      transport.close()

  def _wait(self, transport: asyncio.Transport) -> None:
    loop = asyncio.get_running_loop()
    self._clock = loop.call_later(self._limits.seconds, transport.abort)

  def handle_error(
    self,
    request: web.BaseRequest,
    status: int = 500,
    exc: Optional[BaseException] = None,
    message: Optional[str] = None,
  ) -> web.StreamResponse:
    """The answer to what is no HTTP, in the form of the other errors."""
    if request.writer.output_size > 0:
      raise ConnectionError("the answer was begun already")
    self._count(status)
    text = "the server failed; its log says why"
    if status == 400:
      reason = str(message or exc or "").splitlines() or ["malformed"]
      text = f"this is no HTTP request: {reason[0].strip().rstrip(':')}"
    elif exc is not None:
      self._log(f"{type(exc).__name__}: {exc}")
    response = error(status, text)
    response.force_close()
    return response

  def log_exception(self, *args: Any, **kw: Any) -> None:
    """One line instead of a traceback; none for what a client did."""
    cause = kw.get("exc_info")
    if not isinstance(cause, web.RequestPayloadError):
      self._log(f"{args[0]}: {type(cause).__name__}: {cause}".splitlines()[0])


class Handshakes:
  """Makes connections for TLS, and counts those that shake hands.

  asyncio tells a connection that it is made after the handshake. Those that
  never shake hands take memory as well, so each counts from the moment that it
  is accepted, until it is made or its time is over.
  """

  def __init__(
    self, make: Callable[[], Connection], server: web.Server, limits: Limits
  ):
    """Counts from 0.

    Args:
      make: a new connection.
      server: which has the connections that are made.
      limits: how many there may be, and for how long they may shake hands.
    """
    self._make = make
    self._server = server
    self._limits = limits
    self._clocks: Dict[Connection, asyncio.TimerHandle] = {}

  def __call__(self) -> Connection:
    """A connection that was accepted; asyncio closes it where this raises."""
    made, waiting = len(self._server.connections), len(self._clocks)
    if made + waiting >= self._limits.connections:
      raise ConnectionRefusedError("too many connections")
    connection = self._make()
    self._clocks[connection] = asyncio.get_running_loop().call_later(
      self._limits.seconds, self._clocks.pop, connection, None
    )
    connection.when_made = lambda: self._over(connection)
    return connection

  def _over(self, connection: Connection) -> None:
    clock = self._clocks.pop(connection, None)
    if clock is not None:
      clock.cancel()
