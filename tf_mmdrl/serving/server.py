"""An HTTP server with TensorFlow Serving's REST interface."""

import asyncio
import concurrent.futures
import dataclasses
import pathlib
import re
import time
from typing import Any, Callable, Optional

import orjson
import tensorflow as tf
from aiohttp import web

from tf_mmdrl.core import errors
from tf_mmdrl.serving import directories, rest
from tf_mmdrl.serving.batching import Batcher
from tf_mmdrl.serving.models import Signature
from tf_mmdrl.serving.server_metrics import Metrics
from tf_mmdrl.serving.store import Served, Store

_ADDRESS = re.compile(
  r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>[^/:]+))?"
  r"(?P<verb>|/metadata|:predict)"
)


@dataclasses.dataclass(frozen=True)
class Limits:
  """What a client may ask for.

  Attributes:
    body_bytes: of one request.
    concurrent: predictions under way; more are told to come back.
    seconds: for a client to send a body, and for the model to answer.
    idle_seconds: before a connection without a request is closed.
    batch: observations put together in one run of the model.
  """

  body_bytes: int = 8 * 2**20
  concurrent: int = 128
  seconds: float = 10.0
  idle_seconds: float = 60.0
  batch: int = 64


class Refusal(errors.UserError):
  """A request that gets another status than 400."""

  def __init__(self, status: int, text: str):
    super().__init__(text)
    self.status = status


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
    log: Callable[[str], None] = print,
  ):
    """Loads nothing yet.

    Args:
      directory: of the versions.
      name: of the model, in addresses.
      limits: what a client may ask for; the defaults if None.
      count: how many of the newest versions to serve.
      poll_seconds: between two looks for a newer one.
      log: told what happens.
    """
    self._directory = directory
    self._name = name
    self._limits = limits or Limits()
    self._poll_seconds = poll_seconds
    self._log = log
    self._metrics = Metrics()
    # One thread: a run of the model uses all cores by itself.
    self._executor = concurrent.futures.ThreadPoolExecutor(1)
    self._store = Store(directory, count=count, make_batcher=self._batcher)
    self._runner: Optional[web.ServerRunner] = None
    self._poller: Optional[asyncio.Task[None]] = None

  async def start(self, host: str, port: int) -> int:
    """Loads the model and listens; returns the port, chosen if it was 0."""
    await self._refresh()
    if not self._store.numbers:
      failures = "; ".join(self._store.failures.values())
      if failures:
        raise errors.UserError(failures)
      raise directories.nothing_in(pathlib.Path(self._directory))
    # Not an Application: its routing is a good part of a small request's time.
    server = web.Server(
      self._answer,
      request_factory=self._request,
      access_log=None,
      keepalive_timeout=self._limits.idle_seconds,
      lingering_time=1.0,  # to take the rest of a body that was refused
    )
    self._runner = web.ServerRunner(
      server, shutdown_timeout=self._limits.seconds
    )
    await self._runner.setup()
    try:
      await web.TCPSite(self._runner, host, port).start()
    except OSError as error:
      reason = str(error.strerror).rpartition(": ")[2]
      raise errors.UserError(
        f"cannot listen at {host}:{port}: {reason}; pass another --host or"
        " --port"
      ) from None
    self._poller = asyncio.create_task(self._poll())
    return self._runner.addresses[0][1]

  async def stop(self) -> None:
    """Answers what is under way, then closes."""
    if self._poller is not None:
      self._poller.cancel()
    if self._runner is not None:
      await self._runner.cleanup()
    self._executor.shutdown()

  def _request(self, message, payload, protocol, writer, task):
    """aiohttp's request, with our limit of its body."""
    loop, limit = asyncio.get_running_loop(), self._limits.body_bytes
    return web.BaseRequest(
      message, payload, protocol, writer, task, loop, client_max_size=limit
    )

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
    for number, text in self._store.failures.items():
      if before.get(number) != text:
        self._log(f"version {number} is passed over: {text}")

  async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
    """Answers any request; what went wrong becomes a status and one line."""
    try:
      response = await self._route(request)
    except Refusal as error:
      response = _error(error.status, str(error))
    except errors.UserError as error:
      response = _error(400, str(error))
    except tf.errors.InvalidArgumentError as error:
      response = _error(400, _reason(error))
    except Exception as error:  # a fault of ours must not end the connection
      self._log(f"{type(error).__name__} at {request.path}: {error}")
      response = _error(500, "the server failed; its log says why")
    self._metrics.count(response.status)
    return response

  async def _route(self, request: web.BaseRequest) -> web.Response:
    path = request.path
    found = _ADDRESS.fullmatch(path)
    if found and found["verb"] == ":predict":
      _require(request, "POST")
      return await self._predict(request, found)
    if not found and path not in ("/healthz", "/metrics"):
      raise Refusal(404, f"there is nothing at {path}; see /v1/models/NAME")
    _require(request, "GET")
    if found:
      return self._describe(found)
    if path == "/healthz":
      return web.Response(text="ok\n")
    return web.Response(text=self._metrics.text(self._store.numbers[-1]))

  def _describe(self, address: "re.Match[str]") -> web.Response:
    """The signatures and origin of a version, or the state of all."""
    served = self._find(address)
    if address["verb"] == "/metadata":
      return _json(rest.metadata(self._name, served.model))
    states = self._store.failures | dict.fromkeys(self._store.numbers, "")
    content = [
      rest.status(number, failure)
      for number, failure in sorted(states.items(), reverse=True)
      if address["version"] in (None, str(number))
    ]
    return _json({"model_version_status": content})

  async def _predict(
    self, request: web.BaseRequest, address: "re.Match[str]"
  ) -> web.Response:
    if self._metrics.in_flight >= self._limits.concurrent:
      raise Refusal(503, "too many requests are under way; try again")
    started = time.perf_counter()
    self._metrics.in_flight += 1
    try:
      served = self._find(address)
      body = await self._body(request)
      wanted = rest.decode(body, served.model.signatures)
      outputs = await served.batchers[wanted.signature].submit(
        wanted.inputs, wanted.size, self._limits.seconds
      )
    except TimeoutError:
      raise Refusal(504, "the model did not answer in time") from None
    finally:
      self._metrics.in_flight -= 1
      self._metrics.seconds.observe(time.perf_counter() - started)
    return web.Response(
      body=rest.encode(outputs, by_row=wanted.by_row),
      content_type="application/json",
    )

  def _find(self, address: "re.Match[str]") -> Served:
    """The version that an address names."""
    name, version = address["name"], address["version"]
    if name != self._name:
      raise Refusal(404, f"unknown model {name!r}; there is {self._name!r}")
    try:
      return self._store.get(None if version is None else int(version))
    except (KeyError, ValueError):
      there = ", ".join(map(str, self._store.numbers))
      raise Refusal(
        404, f"version {version} is not served; there is {there}"
      ) from None

  async def _body(self, request: web.BaseRequest) -> bytes:
    limits = self._limits
    # Not wait_for, which makes a task of every request.
    clock = asyncio.get_running_loop().call_later(
      limits.seconds, request.content.set_exception, asyncio.TimeoutError()
    )
    try:
      if (request.content_length or 0) > limits.body_bytes:
        raise web.HTTPRequestEntityTooLarge(limits.body_bytes)
      return await request.read()
    except web.HTTPRequestEntityTooLarge:
      size = limits.body_bytes
      raise Refusal(413, f"a body may have {size} bytes; send less") from None
    except asyncio.TimeoutError:
      seconds = f"{limits.seconds:g} s"
      raise Refusal(408, f"the body did not come in {seconds}") from None
    finally:
      clock.cancel()


def _require(request: web.BaseRequest, method: str) -> None:
  if request.method != method:
    raise Refusal(405, f"{request.path} wants {method}, got {request.method}")


def _json(content: Any) -> web.Response:
  body = orjson.dumps(content, option=orjson.OPT_INDENT_2)
  return web.Response(body=body, content_type="application/json")


def _error(status: int, text: str) -> web.Response:
  return web.Response(
    body=orjson.dumps({"error": text}),
    status=status,
    headers={"Retry-After": "1"} if status == 503 else None,
    content_type="application/json",
  )


def _reason(error: tf.errors.InvalidArgumentError) -> str:
  """What an assertion in the graph says, or else the first line."""
  said = re.search(r"assertion failed: \[(.*?)\] \[", error.message)
  return said[1] if said else error.message.splitlines()[0]
