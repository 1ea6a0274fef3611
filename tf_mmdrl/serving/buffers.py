"""What one connection may hold in memory, whatever its client does.

A client may send requests without end and take no answer, before it has shown
any token. So everything that waits has a size: bytes that were read and not
parsed, headers, requests in the queue, answers. `Limits.memory_bytes` counts
their sum for each connection.
"""

import asyncio
import asyncio.sslproto

from aiohttp import http, web

# Bytes that are read at a time, and wait to be parsed.
_READ = 2**15
# Bytes of answers that wait before writing does.
_WRITE = 2**16
# Headers of a request, and all of their bytes; what was read at a time may be
# more. Browsers and proxies send a tenth of it.
_HEADERS = 64
HEADER_BYTES = 2**14
# Requests that are parsed while one is answered.
_QUEUE = 2


def limit(
  protocol: web.RequestHandler, loop: asyncio.AbstractEventLoop
) -> None:
  """Lowers what aiohttp holds for a connection; before it is made."""
  # aiohttp's own queue has 32 requests of 128 headers of 8 KiB.
  protocol._parser = http.HttpRequestParser(
    protocol,
    loop,
    _READ,
    max_headers=_HEADERS,
    payload_exception=web.RequestPayloadError,
    max_msg_queue_size=_QUEUE,
  )
  protocol._max_msg_queue_size = _QUEUE
  protocol._msg_queue_resume_size = _QUEUE // 2


def limit_transport(transport: asyncio.Transport) -> None:
  """Lowers what asyncio holds for a connection that is made."""
  transport.set_write_buffer_limits(high=_WRITE)
  if hasattr(transport, "set_read_buffer_limits"):  # TLS
    transport.set_read_buffer_limits(high=_READ)
  elif hasattr(transport, "max_size"):  # of what is read at a time
    transport.max_size = _READ


def limit_tls() -> None:
  """Lowers what asyncio holds for TLS from the first byte of a handshake on.

  It has no other place to say so than its class, so that this is for all
  connections of this process.
  """
  if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
    asyncio.sslproto.SSLProtocol.max_size = _READ
