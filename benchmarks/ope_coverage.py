"""How often 95 % intervals of `mmdrl ope` hold the true mean return.

100 data sets of 60 episodes of a random walk whose mean return is known
exactly: states 0 to 4 from 2 on, left or right; a step costs 0.05, give or take
0.2; the left end pays nothing, the right one 1 with probability 0.7. The policy
goes right with 0.6; what was logged is that policy, or goes right with 0.5 or
0.3.

    python benchmarks/ope_coverage.py weighted -o DIR
    python benchmarks/ope_coverage.py fitted -o DIR
    python benchmarks/ope_coverage.py table -o DIR

`weighted` has the estimators by importance weights, and the doubly robust one
on top of the neighbours' model of the first ten episodes; `fitted` has fitted
MMD evaluation with intervals of 8 refits. Both go on where they were cut.
"""

import argparse
import json
import pathlib
from typing import Dict, Iterator, List, Tuple

import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.offline.dataset import DataSet, Description, Episode

GAMMA = 0.9
POLICY = 0.6  # goes right with it
LOGGED = {
  "the policy itself": POLICY,
  "right with 0.5": 0.5,
  "right with 0.3": 0.3,
}
EPISODES, REFITS = 60, 8
_WALK, _COST, _NOISE, _PAID = 5, 0.05, 0.2, 0.7
# Estimator -> the low and the high end of the mean's interval.
Found = Dict[str, Tuple[float, float]]


class Walk(DataSet):
  """Episodes of a walk, in memory."""

  has_behaviour = True

  def __init__(self, right: float, seed: int):
    self._episodes = _play(right, EPISODES, seed)
    self.path = pathlib.Path("walk")
    self.description = Description((_WALK,), np.dtype(np.float32), 2)
    self.lengths = np.array([len(each.actions) for each in self._episodes])

  def read(self, indices) -> Iterator[Episode]:
    """Episodes by number."""
    for index in indices:
      yield self._episodes[index]


def _play(right: float, episodes: int, seed: int) -> List[Episode]:
  generator = np.random.default_rng([seed, 11])
  one_hot = np.eye(_WALK, dtype=np.float32)
  made = []
  for _ in range(episodes):
    state, rows = 2, []
    while 0 <= state < _WALK:
      goes = generator.random() < right
      after = state + (1 if goes else -1)
      reward = _NOISE * generator.uniform(-1, 1) - _COST
      reward += after == _WALK and generator.random() < _PAID
      rows.append((state, int(goes), reward, right if goes else 1 - right))
      state = after
    states, actions, rewards, chances = map(np.array, zip(*rows))
    seen = one_hot[states]
    after = np.concatenate([seen[1:], np.zeros_like(seen[:1])])
    made.append(
      Episode(seen, actions, rewards.astype(np.float32), after, True, chances)
    )
  return made


def exact() -> float:
  """The exact mean return of the policy from the middle."""
  system, known = np.eye(_WALK), np.full(_WALK, -_COST)
  for state in range(_WALK):
    if state + 1 < _WALK:
      system[state, state + 1] -= GAMMA * POLICY
    else:
      known[state] += POLICY * _PAID
    if state:
      system[state, state - 1] -= GAMMA * (1 - POLICY)
  return float(np.linalg.solve(system, known)[2])


def probabilities(seen: np.ndarray) -> np.ndarray:
  """[B, A] of the policy."""
  return np.tile([[1 - POLICY, POLICY]], [len(seen), 1])


def weighted(data: Walk, seed: int) -> Found:
  """Intervals of what needs weights."""
  from tf_mmdrl.offline import blocks, importance, laws, neighbours

  paths = importance.paths(data, probabilities, GAMMA)
  grid = laws.make_grid(-3.0, 2.0, EPISODES)
  block = blocks.load(list(data.read(range(10))), probabilities, blocks.Scale())
  model = neighbours.fit(block, gamma=GAMMA, bandwidth=0.05, atoms=101)

  def returns(seen):
    atoms = model.returns[0][0]
    # A transition's reward may lead beyond what follows it.
    wide = np.linspace(atoms[0] - 2, atoms[-1] + 2, 301)
    weights = np.stack(
      [
        model.on_grid(seen, np.tile(one, [len(seen), 1]), wide)
        for one in np.eye(2)
      ],
      1,
    )
    return np.broadcast_to(wide, weights.shape), weights

  made = importance.estimates(paths, grid, clip=10.0)
  made.append(
    importance.doubly_robust(data, probabilities, returns, paths, GAMMA, grid)
  )
  counts = laws.draws(EPISODES, 300, seed)
  found = {}
  for each in made:
    interval = laws.intervals(each, counts)["mean"]
    found[each.name] = (float(interval.low), float(interval.high))
  return found


class Fitted:
  """Fitted MMD evaluation; compiled once for all data sets."""

  def __init__(self):
    self._fit = None

  def __call__(self, data: Walk, seed: int, directory: pathlib.Path) -> Found:
    """The interval of the mean, by refits."""
    from tf_mmdrl.offline import blocks, fitting, importance, laws, ope, refits
    from tf_mmdrl.train import config as configs

    def source(weights=None):
      return blocks.Source(
        data,
        probabilities,
        blocks.Scale(),
        budget=2**30,
        seed=seed,
        weights=weights,
      )

    if self._fit is None:
      config = configs.change(
        ope.base_config("mmdqn", GAMMA, False, 0),
        ["network.num_particles=8", "schedule.batch_size=64"],
      )
      settings = fitting.Settings(period=100, most=1500, patience=2, drops=1)
      self._fit = fitting.Fit(
        config, data.description, source(), settings, horizon=20
      )
      self._fit._optimizer.build(
        self._fit.agent.return_network.trainable_weights
      )
      self._first = self._fit.variables()
    fit, grid = self._fit, laws.make_grid(-3.0, 2.0, EPISODES)
    fit.begin(self._first, source())
    fit.run()

    def estimates():
      return [importance.fitted(data, probabilities, fit.returns, grid)]

    point = refits.statistics(estimates()[0], ())
    draws = laws.draws(EPISODES, REFITS, seed + 1)
    directory.mkdir(parents=True, exist_ok=True)
    again = refits.again(fit, source, estimates, draws, directory, ())
    interval = refits.intervals(point, [each[0] for each in again])["mean"]
    return {"fitted, refits": (interval.low, interval.high)}


def measure(what: str, directory: pathlib.Path, data_sets: int) -> None:
  """Makes the intervals of all data sets."""
  path = directory / f"{what}.json"
  rows = json.loads(path.read_text()) if path.exists() else {}
  fitted = Fitted()
  for words, right in LOGGED.items():
    for seed in range(data_sets):
      key = f"{words}, {seed}"
      if key in rows:
        continue
      data = Walk(right, seed)
      if what == "weighted":
        rows[key] = weighted(data, seed)
      else:
        place = directory / "refits" / f"{right}_{seed}"
        rows[key] = fitted(data, seed, place)
      whole_files.write(path, json.dumps(rows).encode())
    print(table(directory), flush=True)


def table(directory: pathlib.Path) -> str:
  """How many intervals hold the mean, as Markdown."""
  lines = [
    "| logged | estimator | data sets | hold the mean | width |",
    "|---|---|---:|---:|---:|",
  ]
  wanted = exact()
  for words in LOGGED:
    by: Dict[str, List[Tuple[float, float]]] = {}
    for what in ("weighted", "fitted"):
      path = directory / f"{what}.json"
      rows = json.loads(path.read_text()) if path.exists() else {}
      for key, found in rows.items():
        if key.startswith(words):
          for name, ends in found.items():
            by.setdefault(name, []).append(ends)
    for name, ends in by.items():
      low, high = np.array(ends).T
      inside = 100 * ((low <= wanted) & (wanted <= high)).mean()
      lines.append(
        f"| {words} | {name} | {len(ends)} | {inside:.0f} % |"
        f" {(high - low).mean():.3f} |"
      )
  return "\n".join(lines)


def main() -> None:
  """Parses the flags."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("what", choices=("weighted", "fitted", "table"))
  parser.add_argument("-o", "--output", required=True)
  parser.add_argument("--data-sets", type=int, default=100)
  args = parser.parse_args()
  directory = pathlib.Path(args.output)
  directory.mkdir(parents=True, exist_ok=True)
  if args.what == "table":
    print(table(directory))
    return
  import tensorflow as tf

  # So small a network gains nothing by more threads.
  tf.config.threading.set_intra_op_parallelism_threads(1)
  tf.config.threading.set_inter_op_parallelism_threads(1)
  measure(args.what, directory, args.data_sets)


if __name__ == "__main__":
  main()
