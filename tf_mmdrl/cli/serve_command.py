"""`mmdrl serve`: an HTTP server of exported policies."""

import argparse
import asyncio
import gc
import pathlib
import signal
from typing import TYPE_CHECKING

from tf_mmdrl.cli import quiet
from tf_mmdrl.core import errors

if TYPE_CHECKING:
  from tf_mmdrl.serving import server as servers

_POSITIVE = (
  "versions",
  "poll",
  "max-batch",
  "max-body",
  "max-concurrent",
  "timeout",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl serve`."""
  parser.add_argument(
    "directory", metavar="DIR", help="of versions, from mmdrl export"
  )
  parser.add_argument("--name", default="policy", help="of the model")
  parser.add_argument(
    "--host", default="127.0.0.1", help="0.0.0.0 lets other machines in"
  )
  parser.add_argument("--port", type=int, default=8501, help="0: any free one")
  parser.add_argument(
    "--versions", type=int, default=1, help="how many of the newest to serve"
  )
  parser.add_argument(
    "--poll", type=float, default=2.0, help="seconds between looks for newer"
  )
  parser.add_argument(
    "--max-batch", type=int, default=64, help="observations in one run"
  )
  parser.add_argument(
    "--max-body", type=int, default=8 * 2**20, help="bytes of a request"
  )
  parser.add_argument(
    "--max-concurrent", type=int, default=128, help="requests under way"
  )
  parser.add_argument(
    "--timeout", type=float, default=10.0, help="seconds for body and answer"
  )


def run(args: argparse.Namespace) -> int:
  """Serves until SIGTERM or Ctrl-C; what is under way is answered first."""
  _check(args)
  try:
    with quiet.loading():
      from tf_mmdrl.serving import server as servers
  except ModuleNotFoundError as error:
    if error.name not in ("aiohttp", "orjson"):
      raise
    raise errors.UserError(
      f"mmdrl serve needs {error.name}, which is not installed; run"
      " pip install 'tf-mmdrl[serve]'"
    ) from None
  server = servers.Server(
    pathlib.Path(args.directory),
    name=args.name,
    limits=servers.Limits(
      body_bytes=args.max_body,
      concurrent=args.max_concurrent,
      seconds=args.timeout,
      batch=args.max_batch,
    ),
    count=args.versions,
    poll_seconds=args.poll,
    log=lambda text: print(text, flush=True),
  )
  # What was imported lives on: Python need not look through it for garbage at
  # every large request. Models come later, and go when they are replaced.
  gc.freeze()
  asyncio.run(_serve(server, args))
  return 0


def _check(args: argparse.Namespace) -> None:
  for flag in _POSITIVE:
    value = getattr(args, flag.replace("-", "_"))
    if not value > 0:
      raise errors.UserError(f"--{flag} must be above 0, got {value:g}")
  if not 0 <= args.port < 2**16:
    raise errors.UserError(f"--port must lie in 0..65535, got {args.port}")
  if not args.name or set(args.name) & set("/:"):
    raise errors.UserError(
      f"--name must be a word without / and :, got {args.name!r}"
    )


async def _serve(server: "servers.Server", args: argparse.Namespace) -> None:
  stop = asyncio.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    asyncio.get_running_loop().add_signal_handler(number, stop.set)
  try:
    port = await server.start(args.host, args.port)
    address = f"http://{args.host}:{port}/v1/models/{args.name}"
    print(f"serving at {address}", flush=True)
    await stop.wait()
  finally:
    await server.stop()
