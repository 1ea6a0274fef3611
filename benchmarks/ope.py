"""How near estimates of return distributions come to the truth.

`small`: CartPole, Acrobot and MountainCar with 100 transitions of random play,
discount 0.9, set up as in the study of EBRM (Hong, Qi and Wong, "Distributional
Off-policy Evaluation with Bellman Residual Minimization", 2025): an action is
repeated 1, 10 and 10 times, the last reward of these counts, an end pays -5, 5
and 2 and is followed by a fixed state, so that play never ends. The policy is a
controller that solves the task, with 90 %, 10 % and 30 % random actions. Their
controller is a network that they trained; here it is a rule.

    python benchmarks/ope.py small -o DIR [--seeds 20] [--agents mmdqn dqn]
"""

import argparse
import json
import pathlib
import time
from typing import Callable, Dict, NamedTuple

import gymnasium
import numpy as np

from tf_mmdrl.core import whole_files

GAMMA = 0.9
TRANSITIONS = 100
STEPS = 65  # gamma^65 is a thousandth
RETURNS = 1000  # Monte Carlo returns of the truth
# W1 in EBRM's paper, means over 100 seeds.
PUBLISHED = {
  "CartPole": {"EBRM": 0.56, "QR-DQN": 5.2, "MMDQN": 5.6},
  "Acrobot": {"EBRM": 1.03, "QR-DQN": 4.1, "MMDQN": 4.2},
  "MountainCar": {"EBRM": 2.18, "QR-DQN": 4.9, "MMDQN": 5.3},
}


class Task(NamedTuple):
  """A task of the study.

  Attributes:
    name: of the environment.
    epsilon: share of random actions of the policy.
    repeat: how often an action is repeated.
    end: reward of a step that ends an episode.
    best: observations [B, ...] -> the controller's actions [B].
  """

  name: str
  epsilon: float
  repeat: int
  end: float
  best: Callable[[np.ndarray], np.ndarray]


def _cartpole(seen):
  lean = seen[:, 2] + 0.3 * seen[:, 3] + 0.05 * seen[:, 0] + 0.1 * seen[:, 1]
  return (lean > 0).astype(int)


def _acrobot(seen):
  return np.where(seen[:, 5] > 0, 2, 0)  # pumps: along the second link


def _mountaincar(seen):
  return np.where(seen[:, 1] >= 0, 2, 0)  # pumps: along the velocity


TASKS = {
  "CartPole": Task("CartPole-v1", 0.9, 1, -5.0, _cartpole),
  "Acrobot": Task("Acrobot-v1", 0.1, 10, 5.0, _acrobot),
  "MountainCar": Task("MountainCar-v0", 0.3, 10, 2.0, _mountaincar),
}


class Game:
  """Play that never ends: after an end comes a fixed state."""

  def __init__(self, task: Task):
    self._task = task
    self._env = gymnasium.make(task.name)
    self.num_actions = int(self._env.action_space.n)

  def reset(self, seed: int) -> np.ndarray:
    """A first state."""
    return self._env.reset(seed=seed)[0]

  def step(self, action: int):
    """The next observation and the last reward of the repeated action."""
    for _ in range(self._task.repeat):
      seen, reward, terminated, truncated, _ = self._env.step(action)
      if terminated or truncated:  # as gym did, which told none from the other
        return self._env.reset(seed=1)[0], self._task.end
    return seen, reward

  def probabilities(self, seen: np.ndarray) -> np.ndarray:
    """[B, A] of the policy that is evaluated."""
    chances = np.full(
      [len(seen), self.num_actions], self._task.epsilon / self.num_actions
    )
    chances[np.arange(len(seen)), self._task.best(seen)] += (
      1 - self._task.epsilon
    )
    return chances


def truth(game: Game, returns: int = RETURNS) -> np.ndarray:
  """[M] returns of the policy from random first states."""
  generator = np.random.default_rng(0)
  found = np.zeros(returns)
  for number in range(returns):
    seen = game.reset(seed=1_000_000 + number)
    for step in range(STEPS):
      chances = game.probabilities(seen[None])[0]
      action = generator.choice(len(chances), p=chances)
      seen, reward = game.step(int(action))
      found[number] += GAMMA**step * reward
  return found


def logged(game: Game, seed: int):
  """One episode of random play, as (s, a, r, s')."""
  generator = np.random.default_rng([seed, 7])
  seen = game.reset(seed=seed)
  rows = []
  for _ in range(TRANSITIONS):
    action = int(generator.integers(game.num_actions))
    after, reward = game.step(action)
    rows.append((seen, action, reward, after))
    seen = after
  before, actions, rewards, after = map(np.array, zip(*rows))
  return before, actions, rewards, after


def first_states(game: Game, count: int = 200) -> np.ndarray:
  """[B, ...] where the policy's return is asked for."""
  return np.stack([game.reset(seed=2_000_000 + n) for n in range(count)])


def small(args: argparse.Namespace) -> None:
  """Fits 100 transitions, for every seed, with every estimator."""
  directory = pathlib.Path(args.output)
  directory.mkdir(parents=True, exist_ok=True)
  if args.agents != ["neighbours"]:
    import tensorflow as tf

    # So small a network gains nothing by more threads.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
  for name in args.tasks:
    game = Game(TASKS[name])
    path = directory / f"truth_{name}.npy"
    if not path.exists():
      np.save(path, truth(game))
    exact = np.load(path)
    print(
      f"{name}: played {len(exact)} returns, mean {exact.mean():.2f},"
      f" deviation {exact.std():.2f}",
      flush=True,
    )
    for estimator in args.agents:
      _small_task(name, game, estimator, exact, args.seeds, directory)
  print(table(directory))


def _small_task(name, game, estimator, exact, seeds, directory) -> None:
  path = directory / f"small_{name}_{estimator}.json"
  rows = json.loads(path.read_text()) if path.exists() else {}
  fit = None
  for seed in range(seeds):
    if str(seed) in rows:
      continue
    start = time.process_time()
    if fit is None:
      fit = estimator_of(estimator, game)
    rows[str(seed)] = {
      **compared(*fit(logged(game, 1 + seed)), exact),
      "seconds": round(time.process_time() - start, 1),
    }
    whole_files.write(path, json.dumps(rows).encode())
    print(f"{name} {estimator} {seed}: {rows[str(seed)]}", flush=True)


def compared(values, weights, exact: np.ndarray) -> Dict[str, float]:
  """Distances of a law to played returns."""
  from tf_mmdrl.offline import laws

  signed = np.concatenate([weights, np.full(len(exact), -1 / len(exact))])
  w1, energy = laws.line_distances(np.concatenate([values, exact]), signed)
  mean = float(values @ weights - exact.mean())
  return {"w1": w1, "energy": energy, "mean": mean}


def estimator_of(name: str, game: Game):
  """(transitions) -> values and weights of the return from first states."""
  from tf_mmdrl.offline import blocks, dataset, neighbours, ope

  firsts = first_states(game)
  description = dataset.Description(
    firsts.shape[1:], np.dtype(np.float32), game.num_actions
  )

  def load(rows):
    before, actions, rewards, after = rows
    episode = dataset.Episode(
      before.astype(np.float32),
      actions.astype(np.int64),
      rewards.astype(np.float32),
      after.astype(np.float32),
      False,
    )
    scale = blocks.Scale(
      before.mean(0), np.where(before.std(0) > 1e-6, before.std(0), 1.0)
    )
    return blocks.load([episode], game.probabilities, scale), scale

  chances = game.probabilities(firsts)
  if name == "neighbours":

    def by_neighbours(rows):
      block, scale = load(rows)
      model = neighbours.fit(block, gamma=GAMMA)
      return model.law(scale(firsts), chances)

    return by_neighbours

  import tensorflow as tf

  from tf_mmdrl.offline import fitting
  from tf_mmdrl.train import config as configs

  config = configs.change(
    ope.base_config(name, GAMMA, False, 0),
    [] if name in ("dqn", "c51") else ["network.num_particles=16"],
  )
  made: Dict[str, fitting.Fit] = {}
  # Variables, so that nothing is compiled again for the next data set.
  bounds = tf.Variable(0.0), tf.Variable(0.0)

  def by_fit(rows):
    block, scale = load(rows)
    extremes = block.rewards.min(), block.rewards.max()
    found = fitting.possible_returns(extremes, GAMMA, ends=False)
    for bound, value in zip(bounds, found or ()):
      bound.assign(value)
    if "fit" not in made:
      source = _Fixed(block)
      made["fit"] = fitting.Fit(
        config,
        description,
        source,
        fitting.Settings(period=200, most=3000, patience=2, drops=1),
        horizon=STEPS,
        bounds=bounds,
      )
      made["fit"]._optimizer.build(
        made["fit"].agent.return_network.trainable_weights
      )
      made["first"] = made["fit"].variables()
    fit = made["fit"]
    fit.begin(made["first"], _Fixed(block))
    fit.run()
    values, weights = fit.returns(scale(firsts))
    mixed = chances[..., None] * weights / len(firsts)
    return values.ravel().astype(float), mixed.ravel()

  return by_fit


class _Fixed:
  """Transitions that are all learnt from, and looked at."""

  is_held_out = False

  def __init__(self, block):
    self.held_out = block

  def block(self, number: int):
    del number
    return self.held_out


def table(directory: pathlib.Path) -> str:
  """W1 and energy distance by task and estimator, as Markdown."""
  lines = [
    "| task | estimator | seeds | W1 | energy distance | error of the mean |",
    "|---|---|---:|---:|---:|---:|",
  ]
  for name in TASKS:
    for path in sorted(directory.glob(f"small_{name}_*.json")):
      rows = list(json.loads(path.read_text()).values())
      if not rows:
        continue
      cells = []
      for key in ("w1", "energy", "mean"):
        values = np.abs([row[key] for row in rows])
        error = (
          values.std(ddof=1) / np.sqrt(len(values)) if len(rows) > 1 else 0
        )
        cells.append(f"{values.mean():.3f} ± {error:.3f}")
      estimator = path.stem.split("_", 2)[2]
      lines.append(
        f"| {name} | {estimator} | {len(rows)} | {' | '.join(cells)} |"
      )
    for other, value in PUBLISHED[name].items():
      lines.append(f"| {name} | {other} (published) | 100 | {value} | – | – |")
  return "\n".join(lines)


def main() -> None:
  """Parses the flags."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("what", choices=("small", "table"))
  parser.add_argument("-o", "--output", required=True)
  parser.add_argument("--seeds", type=int, default=20)
  parser.add_argument("--tasks", nargs="+", default=list(TASKS))
  parser.add_argument(
    "--agents", nargs="+", default=["neighbours", "mmdqn", "qrdqn", "dqn"]
  )
  args = parser.parse_args()
  if args.what == "small":
    small(args)
  else:
    print(table(pathlib.Path(args.output)))


if __name__ == "__main__":
  main()
