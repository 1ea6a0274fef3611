"""An HTTP server with TensorFlow Serving's REST interface."""

import asyncio
import concurrent.futures
import functools
import pathlib
import re
import ssl
import time
from typing import Any, Callable, Optional, TypeVar

import orjson
import tensorflow as tf
from aiohttp import web

from tf_mmdrl.core import errors
from tf_mmdrl.serving import (
  bodies,
  buffers,
  connections,
  directories,
  live_page,
  rest,
  saved_model,
)
from tf_mmdrl.serving.batching import Batcher
from tf_mmdrl.serving.games import Games
from tf_mmdrl.serving.limits import Limits, Place, Refusal, UnderWay
from tf_mmdrl.serving.models import Signature
from tf_mmdrl.serving.server_metrics import Metrics
from tf_mmdrl.serving.store import Served, Store

_ADDRESS = re.compile(
  r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>[^/:]+))?"
  r"(?P<verb>|/metadata|:predict)"
)
_GAMES = re.compile(r"/games(/(?P<session>[\w-]{1,32}))?")
# Bytes of JSON that are read or written faster than another thread is asked.
_SMALL = 2**16

_Result = TypeVar("_Result")


class Server:
  """Serves the newest versions in a directory until it is stopped."""

  def __init__(
    self,
    directory: pathlib.Path,
    *,
    name: str = "policy",
    limits: Optional[Limits] = None,
    count: int = 1,
    poll_seconds: float = 2.0,
    token: Optional[str] = None,
    games: Optional[Games] = None,
    log: Callable[[str], None] = print,
  ):
    """Loads nothing yet.

    Args:
      directory: the directory of the versions.
      name: the name of the model, in addresses.
      limits: what a client may ask for; the defaults if None.
      count: how many of the newest versions to serve.
      poll_seconds: between two looks for a newer one.
      token: what clients must show; None lets everyone in.
      games: what the page may show; None shows none.
      log: told what happens.
    """
    self._directory = directory
    self._name = name
    self._limits = limits or Limits()
    self._poll_seconds = poll_seconds
    self._token = token
    self._games = games
    self._log = log
    self._metrics = Metrics()
    self._under_way = UnderWay(self._limits)
    # One thread: a run of the model uses all cores by itself.
    self._executor = concurrent.futures.ThreadPoolExecutor(1)
    # One more, for JSON that is large: one at a time, so that it is there once.
    self._coder = concurrent.futures.ThreadPoolExecutor(1)
    self._player: Optional[live_page.Player] = None
    if games is not None:
      self._player = live_page.Player(games, self._limits, log)
    self._store = Store(directory, count=count, make_batcher=self._batcher)
    self._http: Optional[web.Server] = None
    self._sockets: Optional[asyncio.AbstractServer] = None
    self._poller: Optional[asyncio.Task[None]] = None

  async def start(
    self, host: str, port: int, tls: Optional[ssl.SSLContext] = None
  ) -> int:
    """Loads the model and listens; returns the port, chosen if it was 0."""
    try:
      await self._refresh()
    except OSError as error:
      raise errors.UserError(
        f"cannot read {str(self._directory)!r}: {error.strerror}"
      ) from None
    if not self._store.numbers:
      failures = self._store.failures
      if failures:
        reasons = "; ".join(f"{n}: {why}" for n, why in failures.items())
        raise errors.UserError(
          f"no version in {str(self._directory)!r} can be used: {reasons}"
        )
      raise directories.nothing_in(pathlib.Path(self._directory))
    # Not an Application: its routing is a good part of a small request's time.
    self._http = web.Server(self._answer, request_factory=_request)
    connection: Callable[[], connections.Connection] = functools.partial(
      connections.Connection,
      self._http,
      self._limits,
      count=self._metrics.count,
      log=self._log,
    )
    handshake = None
    if tls is not None:
      handshake = self._limits.seconds
      buffers.limit_tls()
      connection = connections.Handshakes(connection, self._http, self._limits)
    try:
      self._sockets = await asyncio.get_running_loop().create_server(
        connection, host, port, ssl=tls, ssl_handshake_timeout=handshake
      )
    except OSError as error:
      reason = str(error.strerror).rpartition(": ")[2]
      raise errors.UserError(
        f"cannot listen at {host}:{port}: {reason}; pass another --host or"
        " --port"
      ) from None
    self._poller = asyncio.create_task(self._poll())
    return self._sockets.sockets[0].getsockname()[1]

  async def stop(self) -> None:
    """Answers what is under way, then closes."""
    if self._poller is not None:
      self._poller.cancel()
    if self._sockets is not None and self._http is not None:
      self._sockets.close()
      self._http.pre_shutdown()
      await self._http.shutdown(self._limits.seconds)
    self._executor.shutdown()
    self._coder.shutdown()
    if self._player is not None:
      await self._player.stop()

  def _batcher(self, signature: Signature) -> Batcher:
    return Batcher(
      signature.call,
      self._executor,
      max_batch=self._limits.batch,
      watch=self._metrics.rows.observe,
    )

  async def _poll(self) -> None:
    while True:
      await asyncio.sleep(self._poll_seconds)
      try:
        await self._refresh()
      except Exception as error:  # what is served goes on, and so does looking
        self._log(f"cannot look for newer versions: {error}")

  async def _refresh(self) -> None:
    before = self._store.failures
    for number in await self._store.refresh():
      self._metrics.reloads += 1
      self._log(f"version {number} is served")
      if not self._store.get(number).model.checked:
        self._log(saved_model.unchecked(number))
    for number, text in self._store.failures.items():
      if before.get(number) != text:
        self._log(f"version {number} is passed over: {text}")

  async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
    """Answers any request; its place is free again when the answer is sent."""
    place = Place(self._under_way)
    try:
      response = await self._response(request, place)
      self._metrics.count(response.status)
      return await connections.send(request, response, self._limits.seconds)
    finally:
      place.leave()

  async def _response(
    self, request: web.BaseRequest, place: Place
  ) -> web.Response:
    """What went wrong becomes a status and one line."""
    try:
      return await self._route(request, place)
    except Refusal as error:
      return connections.error(error.status, str(error))
    except errors.UserError as error:
      return connections.error(400, str(error))
    except tf.errors.InvalidArgumentError as error:
      return connections.error(400, _reason(error))
    except Exception as error:  # a fault of ours must not end the connection
      reason = (str(error) or "no reason").splitlines()[0]
      self._log(f"{type(error).__name__} at {request.path!r}: {reason}")
      return connections.error(500, "the server failed; its log says why")

  async def _route(
    self, request: web.BaseRequest, place: Place
  ) -> web.Response:
    path = request.path
    if path in ("/healthz", "/"):  # they say nothing that needs a token
      _require(request, "GET")
      return live_page.page() if path == "/" else web.Response(text="ok\n")
    if self._token is not None:
      given = request.headers.get("Authorization")
      if not connections.allowed(given, self._token):
        raise Refusal(401, "this server wants Authorization: Bearer TOKEN")
    found = _ADDRESS.fullmatch(path)
    if found and found["verb"] == ":predict":
      _require(request, "POST")
      return await self._predict(request, self._find(found), place)
    game = _GAMES.fullmatch(path)
    if game and self._games is not None and self._player is not None:
      if request.method == "GET" and game["session"] is None:
        return _json({"games": self._games.names, "model": self._name})
      _require(request, "POST")
      return await self._player.answer(request, game["session"], place)
    if not found and path != "/metrics":
      raise Refusal(404, f"there is nothing at {path}; see /v1/models/NAME")
    _require(request, "GET")
    if found:
      return self._describe(found)
    return web.Response(
      text=self._metrics.text(self._store.numbers[-1], self._under_way.count)
    )

  def _describe(self, address: "re.Match[str]") -> web.Response:
    """The signatures and origin of a version, or the state of all."""
    served = self._find(address)
    if address["verb"] == "/metadata":
      return _json(rest.metadata(self._name, served.model))
    numbers, failures = self._store.numbers, self._store.failures
    content = [
      rest.status(
        number, served=number in numbers, failure=failures.get(number, "")
      )
      for number in sorted({*numbers, *failures}, reverse=True)
      if address["version"] in (None, str(number))
    ]
    return _json({"model_version_status": content})

  async def _predict(
    self, request: web.BaseRequest, served: Served, place: Place
  ) -> web.Response:
    started = time.perf_counter()
    most = self._limits.answer_bytes
    place.enter()
    try:
      body = await bodies.read(request, self._limits, place)
      wanted = await self._code(
        len(body), rest.decode, body, served.model.signatures, most
      )
      del body  # what it said takes its place
      place.take(wanted.answer_bytes)
      outputs = await served.batchers[wanted.signature].submit(
        wanted.inputs, wanted.size, self._limits.seconds
      )
      answer = await self._code(
        wanted.answer_bytes, rest.encode, outputs, wanted.by_row, most
      )
    except TimeoutError:
      raise Refusal(504, "the model did not answer in time") from None
    finally:
      self._metrics.seconds.observe(time.perf_counter() - started)
    return web.Response(body=answer, content_type="application/json")

  async def _code(
    self, size: int, function: Callable[..., _Result], *args: Any
  ) -> _Result:
    """Reads or writes JSON, where it holds up nobody if it is large."""
    if size <= _SMALL:
      return function(*args)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(self._coder, function, *args)

  def _find(self, address: "re.Match[str]") -> Served:
    """The version that an address names."""
    name, version = address["name"], address["version"]
    if name != self._name:
      raise Refusal(404, f"unknown model {name!r}; there is {self._name!r}")
    if version is None:
      return self._store.get()
    numbers = {str(number): number for number in self._store.numbers}
    if version not in numbers:  # "07" is not 7
      there = ", ".join(numbers)
      raise Refusal(404, f"version {version} is not served; there is {there}")
    return self._store.get(numbers[version])


def _request(message, payload, protocol, writer, task):
  """aiohttp's request; the connection learns that its headers have come."""
  protocol.began(payload)
  loop = asyncio.get_running_loop()
  return web.BaseRequest(message, payload, protocol, writer, task, loop)


def _require(request: web.BaseRequest, method: str) -> None:
  if request.method != method:
    raise Refusal(405, f"{request.path} wants {method}, got {request.method}")


def _json(content: Any) -> web.Response:
  body = orjson.dumps(content, option=orjson.OPT_INDENT_2)
  return web.Response(body=body, content_type="application/json")


def _reason(error: tf.errors.InvalidArgumentError) -> str:
  """What an assertion in the graph says, or else the first line."""
  said = re.search(r"assertion failed: \[(.*?)\] \[", error.message)
  return said[1] if said else error.message.splitlines()[0]
