"""CartPole-v1 with its rewards multiplied, and nothing else changed.

  python benchmarks/scale.py [--factors 0.01,1,10,1000] [--seeds 16,17,18]
    [--json docs/results/units/scale.json]

Each run is `mmdrl train --preset classic`, 60k steps. Then its last policy
plays 20 fresh games: it has solved the task if they average 475. No policy is
chosen by its scores, because the best of several evaluations was often a lucky
one. A cell is the score of the fresh games, in CartPole's own rewards. Run it
again and it goes on: what has been played is not played again. `--json` keeps
every game, with the commit that its run was trained with. The exit code is 0 if
all are solved.

Imported by Gymnasium, as in `--env scale:CartPoleTimes1000-v1`, this file is
also what makes those environments.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import cartpole

from tf_mmdrl.core import run_files

AGENTS = "mmdqn,qrdqn"
FACTORS = "0.01,1,10,1000"
SEEDS = "16,17,18"  # none of them was used to choose a setting
SOLVED = 475
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
  parser.add_argument("--json", type=pathlib.Path, help="file for the games")
  args = parser.parse_args()
  # For the processes that train: they find this file, and the factors.
  here = str(pathlib.Path(__file__).resolve().parent)
  path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
  os.environ.update(PYTHONPATH=path, MMDRL_FACTORS=args.factors)
  seeds = args.seeds.split(",")
  for seed in seeds:  # outermost: what is cut short has all factors
    for factor in args.factors.split(","):
      code = 0 if is_played(args, factor, seed) else sweep(args, factor, seed)
      if code:
        return code
  print("mean of 20 fresh games of the last policy, seeds " + args.seeds)
  print(f"{'agent':8} {'rewards x':>10} {'solved':>6}  runs")
  everything = True
  for agent in args.agents.split(","):
    for factor in args.factors.split(","):
      cells = [cell(args, agent, factor, seed) for seed in seeds]
      solved = sum(score >= SOLVED for score in cells)
      everything &= solved == len(cells)
      text = ", ".join(f"{score:.1f}" for score in cells)
      print(f"{agent:8} {factor:>10} {solved}/{len(cells):<4}  {text}")
  if args.json is not None:
    args.json.write_text(json.dumps(games(args), indent=1) + "\n")
  return 0 if everything else 1


def is_played(args, factor, seed):
  """Whether the fresh games of every agent are there."""
  return all(
    fresh_file(args, agent, factor, seed).exists()
    for agent in args.agents.split(",")
  )


def games(args):
  """Every fresh game of every run, as JSON values."""
  runs = []
  for agent in args.agents.split(","):
    for factor in args.factors.split(","):
      for seed in args.seeds.split(","):
        fresh = fresh_file(args, agent, factor, seed)
        made = json.loads((fresh.parent / "config.json").read_text())
        runs.append(
          {
            "agent": agent,
            "factor": factor,
            "seed": int(seed),
            "commit": made["git_commit"],
            "scores": json.loads(fresh.read_text()),
          }
        )
  command = shlex.join(["python", *sys.argv])
  return {"command": command, "games_seed": FRESH_SEED, "runs": runs}


def sweep(args, factor, seed):
  """Trains what is left of one factor and seed; the exit code."""
  line = [sys.executable, "-m", "tf_mmdrl", "sweep", "--preset", "classic"]
  line += ["--envs", f"scale:{environment(factor)}", "--agents", args.agents]
  line += ["--seeds", seed, "--jobs", args.jobs]
  line += ["--run-dir", str(args.run_dir)]
  # Few evaluations, which nothing depends on.
  line += ["--set", "evaluation.period=20000"]
  return subprocess.run(line).returncode


def cell(args, agent, factor, seed):
  """Mean score of fresh games of a run's last policy, over the factor."""
  fresh = fresh_file(args, agent, factor, seed)
  if not fresh.exists():
    run = fresh.parent
    last = int(run_files.last(run_files.RunFiles(run).rows(), "step"))
    fresh.write_text(json.dumps(fresh_scores(run, last)))
  return float(np.mean(json.loads(fresh.read_text()))) / float(factor)


def fresh_file(args, agent, factor, seed):
  """Where a run keeps the scores of its fresh games."""
  run = args.run_dir / f"scale:{environment(factor)}" / agent / f"seed{seed}"
  return run / "fresh.json"


def fresh_scores(run, version):
  """Scores of 20 fresh games of a run's policy, as they are."""
  from tf_mmdrl.train import playing  # loads TensorFlow

  policy = playing.open_policy(run, version, ["scale"])
  config = policy.config.replace(system={"seed": FRESH_SEED})
  played = playing.evaluate(policy, playing.for_episodes(config, "20"))
  return [float(score) for score in played.scores]


if __name__ == "__main__":
  sys.exit(main())
