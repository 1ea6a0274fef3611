"""The argument RUN of commands that read runs, and what they may import."""

import argparse
import pathlib
from typing import TYPE_CHECKING, Any, ContextManager, Dict

from tf_mmdrl import zoo
from tf_mmdrl.cli import parsing
from tf_mmdrl.core import errors, run_files

if TYPE_CHECKING:
  from tf_mmdrl.train.run_directory import RunDirectory


def add(parser: argparse.ArgumentParser) -> None:
  """Adds RUN and --import."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  add_import(parser)


def add_several(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
  """Adds RUN, of which there may be several."""
  parser.add_argument(
    "runs",
    metavar="RUN",
    nargs=nargs,
    help="run directories, or directories that hold them",
  )


def add_import(parser: argparse.ArgumentParser) -> None:
  """Adds --import, which few need."""
  parsing.more(parser).add_argument(
    "--import",
    dest="imports",
    metavar="MODULE",
    action="append",
    default=[],
    help=(
      "module that the settings name and that may be imported, such as that"
      " of the environment MODULE:ID; no other one is"
    ),
  )


def policies(text: str) -> pathlib.Path:
  """The type of an argument that takes a path or `zoo:NAME`."""
  try:
    return zoo.place(text)
  except errors.UserError as error:
    raise argparse.ArgumentTypeError(str(error)) from None


def require(args: argparse.Namespace) -> run_files.RunFiles:
  """Raises if RUN is no run, before the seconds that TensorFlow takes."""
  files = run_files.RunFiles(pathlib.Path(args.directory))
  files.settings()
  return files


def directory(args: argparse.Namespace) -> "RunDirectory":
  """What `add` added."""
  from tf_mmdrl.train import run_directory

  return run_directory.RunDirectory(pathlib.Path(args.directory), args.imports)


def restored(args: argparse.Namespace) -> ContextManager[Any]:
  """The run as it was at its newest whole checkpoint, played or not."""
  from tf_mmdrl.train import runs

  make: Dict[str, Any] = {}
  if directory(args).config().replay.data:
    from tf_mmdrl.offline import data_run

    make["make"] = data_run.without_data
  return runs.restored(pathlib.Path(args.directory), args.imports, **make)
