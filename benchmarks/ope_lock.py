"""Return distributions of the combination lock, from logged data.

A lock of ten steps, after Misra et al., "Kinematic State Abstraction and
Provably Efficient Rich-Observation Reinforcement Learning" (2020): two good
states and a dead end at each step, ten actions, one of which keeps a good state
good (either of the two, by chance) while the others lead to the dead end. Who
comes through is paid 0, 1 or 2 with the probabilities 1/2, 1/4 and 1/4; the
step into the dead end pays 0 or 0.1, each with 1/2. Observations are 30
numbers: the state and the step as one-hot vectors, turned by a fixed rotation,
with noise. The policy takes the good action with 0.9, the one that was logged
with 0.8.
With `--rewards 2` the two kinds of pay are two rewards, and the joint
distribution is asked for.

    python benchmarks/ope_lock.py -o DIR [--rewards 1 2] [--seeds 3]

The truth is 20,000 played returns. Fits are those of `mmdrl ope`.
"""

import argparse
import json
import pathlib
import time

import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.offline.dataset import DataSet, Description, Episode

STEPS, ACTIONS, SIZE = 10, 10, 30
EPISODES, RETURNS = 1000, 20_000
NOISE = 0.1


class Lock:
  """The lock, and who plays it."""

  def __init__(self, seed: int = 0):
    generator = np.random.default_rng(seed)
    self._good = generator.integers(ACTIONS, size=[STEPS, 2])
    turned, _ = np.linalg.qr(generator.normal(size=[SIZE, SIZE]))
    self._turn = turned.astype(np.float32)

  def observe(self, step, state, generator) -> np.ndarray:
    """[B, 30] of steps and states [B]."""
    plain = np.zeros([len(state), SIZE], np.float32)
    plain[np.arange(len(state)), state] = 1
    plain[np.arange(len(state)), 3 + step] = 1
    noise = generator.normal(scale=NOISE, size=plain.shape)
    return (plain + noise.astype(np.float32)) @ self._turn

  def chances(self, seen: np.ndarray, share: float) -> np.ndarray:
    """[B, A] of a policy that takes the good action with this share."""
    plain = seen @ self._turn.T
    state, step = plain[:, :3].argmax(1), plain[:, 3 : 4 + STEPS].argmax(1)
    found = np.full([len(seen), ACTIONS], (1 - share) / (ACTIONS - 1))
    good = self._good[np.minimum(step, STEPS - 1), np.minimum(state, 1)]
    found[np.arange(len(seen)), good] = share
    return found

  def play(self, share: float, count: int, seed: int):
    """Observations [H + 1, B, 30], actions, chances and rewards [H, B, 2]."""
    generator = np.random.default_rng([seed, 12])
    state = generator.integers(2, size=count)
    step = np.zeros(count, int)
    seen, taken = [self.observe(step, state, generator)], []
    for number in range(STEPS):
      chances = self.chances(seen[-1], share)
      below = chances.cumsum(1) <= generator.random([count, 1])
      action = np.minimum(below.sum(1), ACTIONS - 1)
      good = (action == self._good[number, np.minimum(state, 1)]) & (state < 2)
      rewards = np.zeros([count, 2], np.float32)
      falls = ~good & (state < 2)
      rewards[falls, 1] = 0.1 * (generator.random(count)[falls] < 0.5)
      state = np.where(good, generator.integers(2, size=count), 2)
      if number == STEPS - 1:
        pay = (generator.random(count) < 0.5) * generator.integers(1, 3, count)
        rewards[:, 0] = np.where(state < 2, pay, 0)
      taken.append((action, chances[np.arange(count), action], rewards))
      seen.append(self.observe(step + number + 1, state, generator))
    actions, chances, rewards = map(np.stack, zip(*taken))
    return np.stack(seen), actions, chances, rewards


class Logged(DataSet):
  """Episodes of the lock, in memory."""

  has_behaviour = True

  def __init__(self, played, dimensions: int):
    seen, actions, chances, rewards = played
    self._parts = seen, actions, chances, _rewards(rewards, dimensions)
    self.path = pathlib.Path("lock")
    self.lengths = np.full(actions.shape[1], STEPS)
    self.description = Description(
      (SIZE,),
      np.dtype(np.float32),
      ACTIONS,
      dimensions if dimensions > 1 else 0,
    )

  def read(self, indices):
    """Episodes by number."""
    seen, actions, chances, rewards = self._parts
    for index in indices:
      yield Episode(
        seen[:-1, index],
        actions[:, index].astype(np.int64),
        rewards[:, index],
        seen[1:, index],
        True,
        chances[:, index],
      )


def _rewards(rewards: np.ndarray, dimensions: int) -> np.ndarray:
  return rewards if dimensions > 1 else rewards.sum(-1)


def evaluate(lock: Lock, dimensions: int, seed: int, directory) -> dict:
  """W1 and energy distance of every estimator, for one data set."""
  from tf_mmdrl.offline import evaluated, fitting, laws, ope, overview
  from tf_mmdrl.offline.target_policies import TargetPolicy
  from tf_mmdrl.train import config as configs

  data = overview.open_data(
    Logged(lock.play(0.8, EPISODES, 1 + seed), dimensions), 1.0
  )
  policy = TargetPolicy("lock", lambda seen: lock.chances(seen, 0.9))
  agent = "joint_mmdqn" if dimensions > 1 else "mmdqn"
  config = configs.change(
    ope.base_config(agent, 1.0, False, seed),
    ["network.num_particles=16", "schedule.batch_size=64"],
  )
  options = ope.Options(
    config, fitting.Settings(period=250, most=4000, patience=2, drops=1)
  )
  found = ope.evaluate(policy, data, options, directory, {})
  true = _rewards(lock.play(0.9, RETURNS, 10**6)[3].sum(0), dimensions)
  made: dict = {}
  for each in evaluated.with_truth(found, true):
    for name, estimate in each.estimates.items():
      key = name if each.part is None else f"{name}, reward {each.part}"
      w1, energy = laws.distances(estimate.law(), each.truth)
      mean = each.statistics[name]["mean"].point - each.truth.mean()
      made[key] = {"w1": w1, "energy": energy, "mean": float(mean)}
  if dimensions > 1:
    fitted, true = found[0].correlation, np.corrcoef(true.T)
    made["correlation"] = {
      "fitted": fitted[0][1],
      "true": float(true[0, 1]),
    }
  return made


def table(rows: dict) -> str:
  """Means over seeds, as Markdown."""
  lines = [
    "| rewards | estimator | seeds | W1 | energy distance | error of mean |",
    "|---:|---|---:|---:|---:|---:|",
  ]
  by: dict = {}
  for key, found in rows.items():
    for name, numbers in found["found"].items():
      by.setdefault((key.split("_")[0], name), []).append(numbers)
  for (dimensions, name), numbers in sorted(by.items()):
    if name == "correlation":
      text = ", ".join(f"{n['fitted']:.2f} ({n['true']:.2f})" for n in numbers)
      lines.append(
        f"| {dimensions} | fitted (true) correlation: {text} | | | | |"
      )
      continue
    cells = []
    for key in ("w1", "energy", "mean"):
      values = np.abs([each[key] for each in numbers])
      error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0
      cells.append(f"{values.mean():.3f} ± {error:.3f}")
    lines.append(
      f"| {dimensions} | {name} | {len(numbers)} | {' | '.join(cells)} |"
    )
  return "\n".join(lines)


def main() -> None:
  """Parses the flags."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("-o", "--output", required=True)
  parser.add_argument("--rewards", type=int, nargs="+", default=[1, 2])
  parser.add_argument("--seeds", type=int, default=3)
  args = parser.parse_args()
  import tensorflow as tf

  # So small a network gains nothing by more threads.
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  directory = pathlib.Path(args.output)
  directory.mkdir(parents=True, exist_ok=True)
  path = directory / "lock.json"
  rows = json.loads(path.read_text()) if path.exists() else {}
  lock = Lock()
  for dimensions in args.rewards:
    for seed in range(args.seeds):
      key, start = f"{dimensions}_{seed}", time.process_time()
      if key not in rows:
        found = evaluate(lock, dimensions, seed, directory / f"fit_{key}")
        seconds = round(time.process_time() - start, 1)
        rows[key] = {"found": found, "seconds": seconds}
        whole_files.write(path, json.dumps(rows).encode())
        print(key, json.dumps(found), flush=True)
  print(table(rows))


if __name__ == "__main__":
  main()
