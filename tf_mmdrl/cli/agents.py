"""`mmdrl agents`: the algorithms."""

import argparse

from tf_mmdrl.train import algorithms


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl agents`."""
  parser.add_argument("name", nargs="?", help="the agent to tell more of")


def run(args: argparse.Namespace) -> int:
  """Lists the algorithms, or prints one's paper and settings."""
  if args.name is None:
    width = max(map(len, algorithms.ALGORITHMS))
    for name, algorithm in algorithms.ALGORITHMS.items():
      print(f"{name:{width}}  {algorithm.summary}")
      print(f"{'':{width}}  {algorithm.paper}")
    return 0
  algorithm = algorithms.get(args.name)
  print(f"{args.name}: {algorithm.summary}")
  print(f"paper: {algorithm.paper}")
  print(f"train: mmdrl train --agent {args.name}")
  for assignment in algorithm.assignments():
    print(f"sets:  {assignment}")
  return 0
