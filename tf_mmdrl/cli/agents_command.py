"""`mmdrl agents`: the algorithms."""

import argparse
import dataclasses

from tf_mmdrl.cli import quiet
from tf_mmdrl.core import algorithms


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl agents`."""
  parser.add_argument("name", nargs="?", help="the algorithm to show in full")


def run(args: argparse.Namespace) -> int:
  """Lists the algorithms, or prints one's paper and settings."""
  if args.name is None:
    names = algorithms.names()
    with quiet.loading():
      found = [algorithms.get(name) for name in names]
    width = max(map(len, names))
    for name, algorithm in zip(names, found):
      print(f"{name:{width}}  {algorithm.summary}")
      print(f"{'':{width}}  {algorithm.paper}")
    return 0
  algorithms.check_name(args.name)
  with quiet.loading():
    algorithm = algorithms.get(args.name)
  print(f"{args.name}: {algorithm.summary}")
  print(f"paper: {algorithm.paper}, {algorithm.url}")
  print(f"train: mmdrl train --agent {args.name}")
  for field in dataclasses.fields(algorithm.settings):
    print(f"own:   agent.{field.name}={field.default}")
    print(f"       {field.metadata['help']}")
  for assignment in algorithm.assignments():
    print(f"sets:  {assignment}")
  if algorithm.published:
    print(f"paper's hyperparameters, --preset published --agent {args.name}:")
  for assignment in algorithm.published_assignments():
    print(f"       {assignment}")
  return 0
