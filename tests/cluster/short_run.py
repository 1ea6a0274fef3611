"""Stands for `mmdrl train`: writes the scores of a task with a best rate.

  short_run.py --seed 0 --set optimizer.learning_rate=1e-3 --run-dir DIR

The score of an evaluation is the larger the nearer the rate is to 1e-3. A run
begins where one before it was cut, as those of `mmdrl train` do, and tells of
every evaluation once more in `evaluated`.
"""

import argparse
import math
import os
import pathlib
import sys
import time

EVALUATIONS = 10
STEPS = 100  # between two


def main():
  """Runs."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--seed", type=int)
  parser.add_argument("--set", action="append")
  parser.add_argument("--run-dir", type=pathlib.Path)
  args, _ = parser.parse_known_args()
  rate = float(args.set[-1].partition("=")[2])
  if rate > 0.05:
    print("mmdrl: an update needs finite numbers")
    return 2
  args.run_dir.mkdir(parents=True, exist_ok=True)
  metrics = args.run_dir / "metrics.csv"
  lines = metrics.read_text().splitlines() if metrics.exists() else []
  with metrics.open("a") as file, (args.run_dir / "evaluated").open("a") as log:
    if not lines:
      print("step,evaluation_score", file=file)
    for number in range(max(0, len(lines) - 1), EVALUATIONS):
      score = number + 1 - 2 * abs(math.log10(rate) + 3) + 0.01 * args.seed
      print(f"{(number + 1) * STEPS},{score}", file=file, flush=True)
      print(number, os.getpid(), file=log, flush=True)
      time.sleep(0.05)
  return 0


if __name__ == "__main__":
  sys.exit(main())
