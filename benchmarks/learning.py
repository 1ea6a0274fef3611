"""Which agents solve CartPole-v1, seed by seed.

  python benchmarks/learning.py [--agents dqn,mmdqn] [--seeds 0,1,2] [--jobs 2]

Each run is `mmdrl train --preset classic`, at most 60k steps; it is solved, and
ends, once 20 games average 475. Agents with noisy layers take random actions as
the others do: with noise alone some seeds rest at 200. Run it again and it goes
on. The exit code is 0 if all are solved.
"""

import argparse
import pathlib
import sys

from tf_mmdrl.cli import main as cli
from tf_mmdrl.core import algorithms, run_files
from tf_mmdrl.train import sweeps

SOLVED = 475
EPSILON = ("schedule.epsilon_start=1", "schedule.epsilon_end=0.04")


def main():
  """Runs what is left, and prints a row for each agent."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  scalar = [name for name in algorithms.names() if name != "joint_mmdqn"]
  parser.add_argument("--agents", default=",".join(scalar))
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--jobs", default="2")
  parser.add_argument("--run-dir", default="runs/cartpole")
  args = parser.parse_args()
  noisy = [name for name in args.agents.split(",") if is_noisy(name)]
  plain = [name for name in args.agents.split(",") if not is_noisy(name)]
  for agents, settings in ((plain, ()), (noisy, EPSILON)):
    code = agents and sweep(args, agents, settings)
    if code:
      return code
  rows = sweeps.finished(pathlib.Path(args.run_dir))
  print(f"{'agent':18} {'solved':>6}  {'steps to solve':24} {'minutes':>7}")
  for agent in args.agents.split(","):
    own = sorted(row for row in rows if row.agent == agent)
    solved = [row for row in own if row.best_score >= SOLVED]
    steps = [
      f"{_last_step(args.run_dir, row):,}" if row in solved else "-"
      for row in own
    ]
    minutes = sum(row.minutes for row in own)
    share = f"{len(solved)}/{len(own)}"
    print(f"{agent:18} {share:>6}  {', '.join(steps):24} {minutes:7.1f}")
  return 0 if all(row.best_score >= SOLVED for row in rows) else 1


def is_noisy(name):
  """Whether an agent explores by noise in its weights."""
  return algorithms.get(name).shared.get("network.noisy", False)


def sweep(args, agents, settings):
  """Runs what is left of these agents; the exit code."""
  line = ["sweep", "--envs", "CartPole-v1", "--preset", "classic"]
  line += ["--agents", ",".join(agents), "--seeds", args.seeds]
  line += ["--jobs", args.jobs, "--run-dir", args.run_dir]
  for text in (f"evaluation.enough={SOLVED}", *settings):
    line += ["--set", text]
  return cli.main(line)


def _last_step(directory, row):
  path = pathlib.Path(directory, row.environment, row.agent, f"seed{row.seed}")
  return int(run_files.last(run_files.RunFiles(path).rows(), "step"))


if __name__ == "__main__":
  sys.exit(main())
