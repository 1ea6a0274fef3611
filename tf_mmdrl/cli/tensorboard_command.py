"""`mmdrl tensorboard`: TensorBoard on runs, the score first."""

import argparse
import signal
import threading

from tf_mmdrl.cli import quiet, run_argument
from tf_mmdrl.core import errors, run_files

EXAMPLE = "mmdrl tensorboard runs"
PAGE = "docs/reports.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl tensorboard`."""
  run_argument.add_several(parser)
  parser.add_argument(
    "--port",
    type=int,
    help="port to serve on; 6006 or the next free one if left out",
  )


def run(args: argparse.Namespace) -> int:
  """Serves until Ctrl-C."""
  if args.port is not None and not 0 <= args.port < 65536:
    raise errors.UserError(f"--port must be from 0 to 65535, got {args.port}")
  runs = run_files.find(args.runs)
  with quiet.loading():
    from tf_mmdrl.train import tensorboard_pages

  tensorboard_pages.serve(runs, args.port, _wait)
  return 0


def _wait(address: str) -> None:
  over = threading.Event()
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: over.set())
  print(f"TensorBoard at {address} (Ctrl-C ends it)", flush=True)
  over.wait()
