"""Reads the body of a request, within limits of size and time."""

import asyncio

from aiohttp import web

from tf_mmdrl.core import errors
from tf_mmdrl.serving.limits import Limits, Place, Refusal


async def read(
  request: web.BaseRequest, limits: Limits, place: Place
) -> bytearray:
  """The body, without its compression.

  Args:
    request: the request whose body it is.
    limits: the limits of its size and time.
    place: keeps the bytes of the body, before they come.

  Returns:
    Bytes. Not `request.read()`, which would keep them with the request.

  Raises:
    UserError: what is wrong with it; a `Refusal` if it is not a 400.
  """
  _require_known(request)
  place.take(_expected(request, limits.body_bytes))
  clock = None
  if not request.content.is_eof():  # else all of it has come
    # Not wait_for, which makes a task of every request.
    clock = asyncio.get_running_loop().call_later(
      limits.seconds, request.content.set_exception, asyncio.TimeoutError()
    )
  try:
    await _invite(request, limits.body_bytes)
    return await _all(request, limits.body_bytes)
  except asyncio.TimeoutError:
    raise Refusal(
      408, f"the body did not come in {limits.seconds:g} s"
    ) from None
  except web.RequestPayloadError as error:  # gzip or chunks that are none
    # aiohttp's own text: "400, message:", and the reason in the next line.
    reason = " ".join(str(error).split()).removeprefix("400, message: ")
    reason = reason or "it is malformed"
    raise errors.UserError(f"the body cannot be read: {reason}") from None
  except ConnectionError:
    raise errors.UserError("the client left before its body came") from None
  finally:
    if clock is not None:
      clock.cancel()


def _require_known(request: web.BaseRequest) -> None:
  """Refuses what would be read as if it were not encoded."""
  encoding = request.headers.get("Content-Encoding", "identity").strip()
  if encoding.lower() not in ("identity", "gzip", "deflate"):
    raise Refusal(
      415,
      f"a body may be encoded by gzip or deflate, got {encoding[:40]!r}; send"
      " it as it is",
    )
  transfer = request.headers.get("Transfer-Encoding", "chunked").strip()
  if transfer.lower() != "chunked":
    raise Refusal(
      501, f"a body may come in chunks, got {transfer[:40]!r}; leave it out"
    )


async def _invite(request: web.BaseRequest, limit: int) -> None:
  """Tells a client that asks first, as curl does, to send its body."""
  asks = request.headers.get("Expect", "").lower() == "100-continue"
  knows = request.version >= (1, 1)
  if asks and knows and (request.content_length or 0) <= limit:
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # the answer has not begun


async def _all(request: web.BaseRequest, limit: int) -> bytearray:
  body = bytearray()
  if (request.content_length or 0) <= limit:
    while len(body) <= limit:
      chunk = await request.content.readany()
      if not chunk:
        return body
      body += chunk
  raise Refusal(413, f"a body may have {limit} bytes; send less")


def _expected(request: web.BaseRequest, limit: int) -> int:
  """The most bytes that a body can have in memory."""
  if request.content_length is None or "Content-Encoding" in request.headers:
    return limit
  return min(request.content_length, limit)
