"""`mmdrl serve`: an HTTP server of exported policies."""

import argparse
import asyncio
import gc
import pathlib
import signal
from typing import TYPE_CHECKING, Any, Dict

from tf_mmdrl.cli import (
  game_flags,
  output,
  parsing,
  quiet,
  run_argument,
  server_access,
)
from tf_mmdrl.core import errors, optional
from tf_mmdrl.environments import names

if TYPE_CHECKING:
  from tf_mmdrl.serving import server as servers
  from tf_mmdrl.serving.limits import Limits

_POSITIVE = (
  "versions",
  "poll",
  "max-batch",
  "max-body",
  "max-answer",
  "max-pending",
  "max-concurrent",
  "max-connections",
  "timeout",
)


EXAMPLE = "mmdrl serve runs/.../export --games"
PAGE = "docs/serving.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl serve`."""
  parser.add_argument(
    "directory",
    metavar="DIR",
    type=run_argument.policies,
    help="directory of versions from mmdrl export, or zoo:NAME",
  )
  parser.add_argument("--name", default="policy", help="name of the model")
  parser.add_argument(
    "--host",
    default="127.0.0.1",
    help="address; 0.0.0.0 lets other machines in",
  )
  parser.add_argument(
    "--port", type=int, default=8501, help="port; 0 takes any free one"
  )
  parser.add_argument(
    "--games",
    metavar="NAMES",
    nargs="?",
    const="",
    help="let the policy play on the page at /: its own game, or NAMES, joined"
    " by commas",
  )
  _add_access(parser)
  _add_limits(parsing.more(parser))


def _add_access(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--token-file",
    metavar="FILE",
    help="answer only requests that send Authorization: Bearer and the token"
    " in this file",
  )
  parser.add_argument(
    "--certificate",
    metavar="FILE",
    help="certificate to speak TLS with, a PEM file",
  )
  parser.add_argument(
    "--key",
    metavar="FILE",
    help="private key, if it is in another PEM file",
  )
  parser.add_argument(
    "--insecure",
    action="store_true",
    help="allow a --host that others reach without --token-file and"
    " --certificate",
  )


def _add_limits(parser: argparse._ActionsContainer) -> None:
  parser.add_argument(
    "--versions", type=int, default=1, help="newest versions to serve"
  )
  parser.add_argument(
    "--poll",
    type=float,
    default=2.0,
    help="seconds between two looks for new versions",
  )
  for flag, default, help_line in (
    ("--max-batch", 64, "most observations in one run of the model"),
    ("--max-body", 8 * 2**20, "most bytes of a request's body"),
    ("--max-answer", 8 * 2**20, "most bytes of an answer"),
    (
      "--max-pending",
      64 * 2**20,
      "most bytes of all bodies and answers at a time",
    ),
    ("--max-concurrent", 128, "most predictions at a time"),
    ("--max-connections", 512, "most open connections at a time"),
  ):
    parser.add_argument(flag, type=int, default=default, help=help_line)
  parser.add_argument(
    "--timeout",
    type=float,
    default=10.0,
    help="most seconds for each of: headers, a body, the model, the sending of"
    " an answer",
  )


def run(args: argparse.Namespace) -> int:
  """Serves until SIGTERM or Ctrl-C; what is under way is answered first."""
  _check(args)
  for module in ("aiohttp", "orjson"):
    optional.require_there(module, use="servers", extra="serve")
  token = None
  if args.token_file is not None:
    token = server_access.read_token(pathlib.Path(args.token_file), output.say)
  played = game_flags.environment(args.directory, None, is_run=False)
  if args.games == "" and played:
    names.require(played)
  with quiet.loading():
    from tf_mmdrl.serving import server as servers
  games = None
  if args.games is not None:
    with quiet.loading():
      from tf_mmdrl.train import served_games

    chosen = [name.strip() for name in args.games.split(",") if name.strip()]
    games = served_games.of_exports(args.directory, chosen)
  server = servers.Server(
    args.directory,
    name=args.name,
    limits=limits(args),
    count=args.versions,
    poll_seconds=args.poll,
    token=token,
    games=games,
    log=output.say,
  )
  # What was imported lives on: Python need not look through it for garbage at
  # every large request. Models come later, and go when they are replaced.
  gc.freeze()
  asyncio.run(_serve(server, args))
  return 0


def limits(args: argparse.Namespace) -> "Limits":
  """What clients may ask for, by the flags."""
  from tf_mmdrl.serving.limits import Limits

  return Limits(
    body_bytes=args.max_body,
    answer_bytes=args.max_answer,
    pending_bytes=args.max_pending,
    concurrent=args.max_concurrent,
    connections=args.max_connections,
    seconds=args.timeout,
    batch=args.max_batch,
    tls=args.certificate is not None,
  )


def _check(args: argparse.Namespace) -> None:
  for flag in _POSITIVE:
    value = getattr(args, flag.replace("-", "_"))
    if not value > 0:
      raise errors.UserError(f"--{flag} must be above 0, got {value:g}")
  if args.max_pending < args.max_body + args.max_answer:
    raise errors.UserError(
      "--max-pending must hold one body and one answer,"
      f" {args.max_body + args.max_answer} bytes, got {args.max_pending}"
    )
  if not 0 <= args.port < 2**16:
    raise errors.UserError(f"--port must lie in 0..65535, got {args.port}")
  if not args.name or set(args.name) & set("/:"):
    raise errors.UserError(
      f"--name must be a word without / and :, got {args.name!r}"
    )
  if args.key is not None and args.certificate is None:
    raise errors.UserError("--key needs --certificate")
  for name in (args.games or "").split(","):
    if name.strip():
      names.require(name.strip())
  _check_access(args)


def _check_access(args: argparse.Namespace) -> None:
  """Refuses to let everybody in unless that was asked for."""
  if server_access.is_local(args.host):
    return
  if args.token_file is None and args.certificate is None:
    if not args.insecure:
      raise errors.UserError(
        f"other machines could ask a server at {args.host!r}; pass"
        " --token-file and --certificate, or --insecure to let everybody in"
      )
    output.say(
      "warning: everybody who reaches this machine can ask this server"
    )
  elif args.token_file is None:
    output.say("warning: without --token-file everybody can ask this server")
  elif args.certificate is None:
    output.say(
      "warning: without --certificate the token can be read on its way"
    )


def _fault(loop: asyncio.AbstractEventLoop, context: Dict[str, Any]) -> None:
  """One line of what asyncio would show as a traceback."""
  cause = context.get("exception")
  reason = f": {type(cause).__name__}: {cause}" if cause else ""
  output.say(f"{context['message']}{reason}".splitlines()[0])


async def _serve(server: "servers.Server", args: argparse.Namespace) -> None:
  stop = asyncio.Event()
  asyncio.get_running_loop().set_exception_handler(_fault)
  for number in (signal.SIGINT, signal.SIGTERM):
    asyncio.get_running_loop().add_signal_handler(number, stop.set)
  try:
    tls = None
    if args.certificate is not None:
      key = None if args.key is None else pathlib.Path(args.key)
      tls = server_access.tls(pathlib.Path(args.certificate), key, output.say)
    port = await server.start(args.host, args.port, tls)
    scheme = "http" if tls is None else "https"
    host = f"[{args.host}]" if ":" in args.host else args.host
    output.say(f"serving at {scheme}://{host}:{port}/v1/models/{args.name}")
    output.say(f"page to watch it: {scheme}://{host}:{port}/")
    await stop.wait()
  finally:
    await server.stop()
