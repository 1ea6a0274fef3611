"""The argument RUN of commands that read a run, and what it may import."""

import argparse
import pathlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tf_mmdrl.train.run_directory import RunDirectory


def add(parser: argparse.ArgumentParser) -> None:
  """Adds RUN and --import."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  add_import(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
  """Adds --import."""
  parser.add_argument(
    "--import",
    dest="imports",
    metavar="MODULE",
    action="append",
    default=[],
    help=(
      "imports a module that the settings name, such as that of the"
      " environment MODULE:ID; none is imported unless it is named here"
    ),
  )


def directory(args: argparse.Namespace) -> "RunDirectory":
  """What `add` added."""
  from tf_mmdrl.train import run_directory

  return run_directory.RunDirectory(pathlib.Path(args.directory), args.imports)
