"""What random play scores in games that the paper's table does not have.

  python benchmarks/random_scores.py [--games 1000] > scores.csv

Reports put scores of several such games together on a scale on which random
play is 0. Its output is `tf_mmdrl/report/data/random_scores.csv`: the mean raw
score of whole games with actions drawn uniformly, and its standard error. Each
of the environments that are stepped together plays the same number of games,
because counting the first games to end would leave out long ones.
"""

import argparse
import csv
import sys

import numpy as np

from tf_mmdrl import environments

NAMES = (
  "MinAtar/Asterix",
  "MinAtar/Breakout",
  "MinAtar/Freeway",
  "MinAtar/Seaquest",
  "MinAtar/SpaceInvaders",
  "Acrobot-v1",
  "CartPole-v1",
  "LunarLander-v3",
  "MountainCar-v0",
)
_BATCH = 20
_SEED = 0


def scores(name, games):
  """[games] raw scores of random play, rounded up to whole batches."""
  env = environments.make_environment(name, num_envs=_BATCH, seed=_SEED)
  rng = np.random.default_rng(_SEED)
  each = -(-games // _BATCH)
  earned = np.zeros(_BATCH)
  finished = [[] for _ in range(_BATCH)]
  time_step = env.reset()
  num_actions = int(env.action_spec().maximum) + 1
  while min(map(len, finished)) < each:
    time_step = env.step(rng.integers(num_actions, size=_BATCH, dtype=np.int32))
    # The first step of an episode has reward 0.
    earned += time_step.reward
    for index in np.flatnonzero(time_step.is_last()):
      finished[index].append(earned[index])
      earned[index] = 0.0
  env.close()
  return np.concatenate([mine[:each] for mine in finished])


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--games", type=int, default=1000, help="for each name")
  args = parser.parse_args()
  out = csv.writer(sys.stdout, lineterminator="\n")
  out.writerow(["game", "random", "standard_error", "games"])
  for name in NAMES:
    found = scores(name, args.games)
    error = found.std(ddof=1) / np.sqrt(len(found))
    out.writerow([name, f"{found.mean():.4g}", f"{error:.2g}", len(found)])
    sys.stdout.flush()


if __name__ == "__main__":
  main()
