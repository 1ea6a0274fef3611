"""Which kernel learns best, task by task, with nothing else changed.

  python benchmarks/kernels.py [--tasks cartpole,breakout] [--seeds 101,102]

Each run is `mmdrl train --agent mmdqn` with the preset of its task and one
kernel, in units of return; `fixed` is the paper's mixture in natural rewards
with the authors' larger first weights, as in version 0.1. A cell is the mean of
all evaluations of a run (how fast and how far it learnt), averaged over seeds,
with the standard deviation over seeds and the mean of the last evaluations in
brackets. Run it again and it goes on with what is left. The exit code is 0 if
all runs have finished.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

from tf_mmdrl.core import run_files

# Name -> environment, and arguments of `mmdrl sweep`.
TASKS = {
  "cartpole": ("CartPole-v1", "--preset classic"),
  "acrobot": (
    "Acrobot-v1",
    "--preset classic --set evaluation.period=5000",
  ),
  "lander": (
    "LunarLander-v3",
    "--preset classic --steps 100000 --set evaluation.period=10000",
  ),
  **{
    game.lower(): (f"MinAtar/{game}", "--preset quickstart")
    for game in ("Breakout", "SpaceInvaders", "Asterix", "Freeway", "Seaquest")
  },
}
FIXED = "fixed"
KERNELS = (
  "gaussian_mixture:1..10+smooth_energy:1",
  "smooth_energy:1",
  "gaussian_mixture:1..10",
  "gaussian_geometric",
  "multiquadric:1",
  "unrectified:1",
  "laplace:1",
  FIXED,
)


def main():
  """Runs what is left, and prints a row for each kernel."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--tasks", default="cartpole,acrobot,lander,breakout")
  parser.add_argument("--kernels", default=",".join(KERNELS))
  parser.add_argument("--seeds", default="101,102")
  parser.add_argument("--run-dir", type=pathlib.Path, default="runs/kernels")
  args = parser.parse_args()
  tasks, kernels = args.tasks.split(","), args.kernels.split(",")
  unknown = sorted(set(tasks) - set(TASKS))
  if unknown:
    parser.error(f"--tasks must be of {', '.join(TASKS)}, got {unknown}")
  for seed in args.seeds.split(","):  # outermost: what is cut has all kernels
    for task in tasks:
      for kernel in kernels:
        code = sweep(args.run_dir, task, kernel, seed)
        if code:
          return code
  print(f"mean of all evaluations (of the last ones), seeds {args.seeds}")
  print(f"{'kernel':24}" + "".join(f"{task:>22}" for task in tasks))
  for kernel in kernels:
    cells = [
      cell(args.run_dir, task, kernel, args.seeds.split(",")) for task in tasks
    ]
    print(f"{kernel:24}" + "".join(f"{text:>22}" for text in cells))
  return 0


def sweep(directory, task, kernel, seed):
  """Trains with one kernel, task and seed unless that is done; exit code."""
  environment, arguments = TASKS[task]
  settings = [f"agent.kernel={kernel}"]
  if kernel == FIXED:
    settings = ["agent.kernel=gaussian_mixture:1..10", "agent.unit=1"]
    settings += ["network.output_scale=1"]
  line = [sys.executable, "-m", "tf_mmdrl", "sweep", "--agents", "mmdqn"]
  line += ["--envs", environment, "--seeds", seed, *arguments.split()]
  line += ["--run-dir", str(directory / folder(kernel))]
  for text in ("system.xla=on", *settings):
    line += ["--set", text]
  return subprocess.run(line).returncode


def cell(directory, task, kernel, seeds):
  """Mean and spread over seeds, and the mean of the last evaluations."""
  averages, lasts = [], []
  for seed in seeds:
    game = TASKS[task][0].replace("/", "-")
    run = directory / folder(kernel) / game / "mmdqn" / f"seed{seed}"
    rows = run_files.RunFiles(run).rows()
    scores = [row["evaluation_score"] for row in rows]
    scores = [score for score in scores if score is not None]
    averages.append(statistics.mean(scores))
    lasts.append(scores[-1])
  spread = f"{statistics.stdev(averages):.1f}" if len(seeds) > 1 else "-"
  mean = statistics.mean(averages)
  return f"{mean:.1f} +- {spread} ({statistics.mean(lasts):.1f})"


def folder(kernel):
  """The kernel's name as that of a directory."""
  return re.sub(r"[^a-z0-9_.]+", "-", kernel)


if __name__ == "__main__":
  sys.exit(main())
