"""CartPole-v1 with its rewards multiplied, and nothing else changed.

  python benchmarks/scale.py [--factors 0.01,1,10,1000] [--seeds 13,14,15]

Each run is `mmdrl train --preset classic`, at most 60k steps; it ends once all
20 games of an evaluation last the 500 steps that they can. Then its best policy
(the last one, unless the run went on to the end) plays 20 fresh games: it has
solved the task if they average 475. A cell is the steps of that policy and the
score of the fresh games, in CartPole's own rewards. Run it again and it goes
on. The exit code is 0 if all are solved.

Imported by Gymnasium, as in `--env scale:CartPoleTimes1000-v1`, this file is
also what makes those environments.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

import gymnasium
from gymnasium.envs.classic_control import cartpole

from tf_mmdrl.core import run_files

AGENTS = "mmdqn,qrdqn"
FACTORS = "0.01,1,10,1000"
SEEDS = "13,14,15"  # none of them was used to choose a setting
ENDS, SOLVED = 499.9, 475  # steps; sums of scaled rewards round
FRESH_SEED = 777


class Times(cartpole.CartPoleEnv):
  """CartPole with rewards of another size."""

  def __init__(self, factor, **options):
    super().__init__(**options)
    self.factor = factor

  def step(self, action):
    """A step whose reward is multiplied by the factor."""
    observation, reward, *rest = super().step(action)
    return observation, float(reward) * self.factor, *rest


def environment(factor):
  """The name of the environment with that factor, as written."""
  return f"CartPoleTimes{factor}-v1"


def register(factors):
  """Tells Gymnasium of environments, by their factors as text."""
  for factor in factors:
    gymnasium.register(
      environment(factor),
      entry_point=Times,
      max_episode_steps=500,
      kwargs={"factor": float(factor)},
    )


register(os.environ.get("MMDRL_FACTORS", FACTORS).split(","))


def main():
  """Runs what is left, and prints a row for each agent and factor."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--agents", default=AGENTS)
  parser.add_argument("--factors", default=FACTORS)
  parser.add_argument("--seeds", default=SEEDS)
  parser.add_argument("--jobs", default="2")
  parser.add_argument("--run-dir", type=pathlib.Path, default="runs/scale")
  args = parser.parse_args()
  # For the processes that train: they find this file, and the factors.
  here = str(pathlib.Path(__file__).resolve().parent)
  path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
  os.environ.update(PYTHONPATH=path, MMDRL_FACTORS=args.factors)
  seeds = args.seeds.split(",")
  for seed in seeds:  # outermost: what is cut short has all factors
    for factor in args.factors.split(","):
      code = sweep(args, factor, seed)
      if code:
        return code
  print("steps of the run, mean of 20 fresh games, for seeds " + args.seeds)
  print(f"{'agent':8} {'rewards x':>10} {'solved':>6}  runs")
  everything = True
  for agent in args.agents.split(","):
    for factor in args.factors.split(","):
      cells = [cell(args, agent, factor, seed) for seed in seeds]
      solved = sum(score >= SOLVED for _, score in cells)
      everything &= solved == len(cells)
      text = ", ".join(
        f"{steps // 1000}k {score:.0f}" for steps, score in cells
      )
      print(f"{agent:8} {factor:>10} {solved}/{len(cells):<4}  {text}")
  return 0 if everything else 1


def sweep(args, factor, seed):
  """Trains what is left of one factor and seed; the exit code."""
  line = [sys.executable, "-m", "tf_mmdrl", "sweep", "--preset", "classic"]
  line += ["--envs", f"scale:{environment(factor)}", "--agents", args.agents]
  line += ["--seeds", seed, "--jobs", args.jobs]
  line += ["--run-dir", str(args.run_dir)]
  line += ["--set", f"evaluation.enough={ENDS * float(factor):g}"]
  return subprocess.run(line).returncode


def cell(args, agent, factor, seed):
  """(steps of a run, mean score of fresh games over the factor)."""
  run = args.run_dir / f"scale:{environment(factor)}" / agent / f"seed{seed}"
  fresh = run / "fresh.txt"
  if not fresh.exists():
    rows = run_files.RunFiles(run).rows()
    evaluated = [row for row in rows if row["evaluation_score"] is not None]
    best = max(evaluated, key=lambda row: row["evaluation_score"])
    line = [sys.executable, "-m", "tf_mmdrl", "evaluate", str(run)]
    line += ["--version", str(int(best["step"])), "--import", "scale"]
    line += ["--seed", str(FRESH_SEED), "--episodes", "20"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    fresh.write_text(done.stdout)
  text = fresh.read_text()
  steps = int(re.search(r"policy of step (\d+)", text)[1])
  return steps, float(re.search(r"mean (\S+)", text)[1]) / float(factor)


if __name__ == "__main__":
  sys.exit(main())
