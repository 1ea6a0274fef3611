"""Whether MMDQN solves CartPole-v1, seed by seed.

  python benchmarks/learning.py [--seeds 0 1 2] [--steps 60000]

Each seed trains `examples/cartpole.py` for at most 60k environment steps; it
counts as solved if 20 fresh episodes then average 475. The exit code is 0 if
all are.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))

import cartpole


def main():
  """Prints a row for each seed."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
  parser.add_argument("--steps", type=int, default=60_000)
  args = parser.parse_args()
  print(f"{'seed':>4} {'steps':>6} {'score':>6} {'solved':>6} {'minutes':>7}")
  solved = 0
  for seed in args.seeds:
    start = time.monotonic()
    steps, score = cartpole.train(seed, args.steps, show=lambda line: None)
    minutes = (time.monotonic() - start) / 60
    ok = score >= cartpole.SOLVED
    solved += ok
    word = "yes" if ok else "no"
    print(
      f"{seed:4d} {steps:6d} {score:6.1f} {word:>6} {minutes:7.1f}", flush=True
    )
  print(f"solved: {solved} of {len(args.seeds)} seeds")
  return 0 if solved == len(args.seeds) else 1


if __name__ == "__main__":
  sys.exit(main())
