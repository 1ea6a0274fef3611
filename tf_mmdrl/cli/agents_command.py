"""`mmdrl agents`: the algorithms."""

import argparse
import dataclasses

from tf_mmdrl.cli import output, quiet
from tf_mmdrl.core import algorithms

EXAMPLE = "mmdrl agents iqn"
PAGE = "docs/algorithms/README.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl agents`."""
  parser.add_argument(
    "name",
    nargs="?",
    help="algorithm to show with its paper and settings; all of them in a list"
    " if left out",
  )


def run(args: argparse.Namespace) -> int:
  """Lists the algorithms, or prints one's paper and settings."""
  if args.name is None:
    rows = [(name, algorithms.summary(name)) for name in algorithms.names()]
    print(*output.two_columns(rows), sep="\n")
    return 0
  algorithms.check_name(args.name)
  with quiet.loading():
    algorithm = algorithms.get(args.name)
  print(
    *output.wrapped(f"{args.name}: {algorithm.summary}", "", "  "), sep="\n"
  )
  print(*output.wrapped(algorithm.paper, "paper: ", "       "), sep="\n")
  print(f"       {algorithm.url}")
  print(f"train: mmdrl train --agent {args.name}")
  for field in dataclasses.fields(algorithm.settings):
    print(f"own:   agent.{field.name}={field.default}")
    text = field.metadata["help"]
    print(*output.wrapped(text, "       ", "       "), sep="\n")
  for assignment in algorithm.assignments():
    print(f"sets:  {assignment}")
  if algorithm.published:
    print(f"paper's hyperparameters, --preset published --agent {args.name}:")
  for assignment in algorithm.published_assignments():
    print(f"       {assignment}")
  return 0
