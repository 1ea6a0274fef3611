"""What `mmdrl ope` takes of memory for a data set that is larger.

Writes a data set of so many gigabytes (episodes of 1,000 steps of 1,000
numbers, logged by random play), evaluates a policy on it in a process of its
own, and prints the most memory that this process had.

    python benchmarks/ope_memory.py -o DIR [--gigabytes 10] [--memory 500M]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

STEPS, SIZE = 1000, 1000


def write(path: pathlib.Path, gigabytes: float) -> int:
  """Writes the data set; how many steps it has."""
  from tf_mmdrl.offline import minari_files
  from tf_mmdrl.offline.dataset import Description, Episode

  description = Description((SIZE,), np.dtype(np.float32), 2)
  writer = minari_files.MinariWriter(path, description, {})
  generator = np.random.default_rng(0)
  seen = generator.normal(size=[STEPS + 1, SIZE]).astype(np.float32)
  count = int(np.ceil(gigabytes * 1e9 / seen.nbytes))
  for _ in range(count):
    actions = generator.integers(2, size=STEPS)
    writer.add(
      Episode(
        seen[:-1],
        actions,
        actions.astype(np.float32),
        seen[1:],
        True,
        np.full(STEPS, 0.5),
      )
    )
  writer.close()
  return count * STEPS


def peak(command) -> float:
  """Runs a command; the most gigabytes that it had at a time."""
  process = subprocess.Popen(command)
  _, status, usage = os.wait4(process.pid, 0)
  if status:
    raise SystemExit(f"{command} ended with {status}")
  return usage.ru_maxrss * 1024 / 1e9


def evaluate(data: pathlib.Path, output: pathlib.Path, memory: str) -> float:
  """Evaluates random play; the most gigabytes that this had at a time."""
  return peak(
    [
      *(sys.executable, "-m", "tf_mmdrl", "ope", "--policy", "random"),
      *("--data", str(data), "-o", str(output)),
      *("--memory", memory, "--estimators", "fitted", "self_normalised"),
      *("--gamma", "0.9", "--updates", "600", "--period", "100"),
      *("--set", "network.num_particles=8"),
    ]
  )


def main() -> None:
  """Parses the flags."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("-o", "--output", required=True)
  parser.add_argument("--gigabytes", type=float, default=10.0)
  parser.add_argument("--memory", default="500M")
  args = parser.parse_args()
  directory = pathlib.Path(args.output)
  directory.mkdir(parents=True, exist_ok=True)
  data = directory / f"data_{args.gigabytes:g}"
  if not data.exists():
    print(f"wrote {write(data, args.gigabytes):,} steps", flush=True)
  size = sum(path.stat().st_size for path in data.rglob("*"))
  start = time.time()
  found = evaluate(data, directory / f"ope_{args.gigabytes:g}", args.memory)
  print(
    f"data {size / 1e9:.1f} GB, --memory {args.memory}: {found:.2f} GB at most,"
    f" {time.time() - start:.0f} s"
  )


if __name__ == "__main__":
  main()
