"""Joint returns: what is learnt of them, against what was played or computed.

  python benchmarks/joint.py laws --seeds 0,1,2
  python benchmarks/joint.py constrained --seeds 0,1,2
  python benchmarks/joint.py esr --seeds 0,1,2

`laws`: mazes under the random policy; joint particles beside independent
marginals (one scalar agent for each source: MMDQN, QR-DQN), against 10,000
Monte Carlo returns. `constrained`: the probability that all limits hold,
against dynamic programming. `esr`: an environment of two steps where the best
policies by ESR and SER differ.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
from typing import Any, Callable, Dict

import joint_distances as distances
import joint_learning as learning
import numpy as np
import tensorflow as tf

from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.environments import mazes
from tf_mmdrl.policies import utilities, utility_names

LIMITS = (0.5, 0.5, 0.5)


def at_start(agent, observation: np.ndarray) -> ReturnDistribution:
  """Distributions [A, N] (or joint) of the first state."""
  output, _ = agent.return_network(tf.constant(observation[np.newaxis]))
  return ReturnDistribution.of(output)


def of_random_policy(returns: ReturnDistribution) -> np.ndarray:
  """The particles of all actions, which the random policy takes alike."""
  values = returns.values.numpy()[0]
  if isinstance(returns, JointReturnDistribution):
    return values.reshape([-1, values.shape[-1]])
  return values.reshape([-1])


@functools.cache
def played(name: str) -> distances.Reference:
  """10,000 returns of the random policy, which no learning seed changes."""
  return distances.Reference(
    learning.monte_carlo(mazes.Maze(name), 10_000, 10_000)
  )


def laws(name: str, seed: int, updates: int) -> Dict[str, Any]:
  """What three ways learn of a maze's returns."""
  maze = mazes.Maze(name)
  steps = learning.random_steps(maze, 20_000, seed)
  first, _ = maze.reset()
  again = learning.monte_carlo(maze, 4 * learning.PARTICLES, 20_000 + seed)
  learnt: Dict[str, np.ndarray] = {}
  made = learning.learner("joint", name)
  made.learn(steps, steps["reward"], seed, updates, evaluate=True)
  learnt["joint_mmdqn"] = of_random_policy(at_start(made.agent, first))
  for kind in ("mmdqn", "qrdqn"):
    parts = []
    for index in range(again.shape[1]):
      made = learning.learner(kind, name)
      reward = steps["reward"][:, index]
      made.learn(steps, reward, seed, updates, evaluate=True)
      parts.append(of_random_policy(at_start(made.agent, first)))
    learnt[f"{kind} marginals"] = distances.independent(parts, seed)
  learnt["as many Monte Carlo returns"] = again
  return {key: played(name).distances(x) for key, x in learnt.items()}


def best_probability(maze: mazes.Maze) -> float:
  """Of one payment of each source at least, by dynamic programming."""
  (number,) = maze.reward_space.shape

  @functools.cache
  def value(cell, closed, paid) -> float:
    if maze.is_end(cell, list(closed)):
      return float(all(paid))

    def of(action) -> float:
      total = 0.0
      for share, after in maze.outcomes(cell, action, list(closed)):
        source = maze.source(after)
        now = tuple(
          got or (i == source and after != cell) for i, got in enumerate(paid)
        )
        total += share * value(after, (*closed, cell), now)
      return total

    ways = maze.open_ways(cell, list(closed))
    return max(of(action) for action in ways)

  return value(maze.start, (), (False,) * number)


def success(env, choose: Callable, games: int, seed: int) -> float:
  """The share of games in which every source paid."""
  env.reset(seed=seed)
  held = 0
  for _ in range(games):
    observation, _ = env.reset()
    total, over = np.zeros(env.unwrapped.reward_space.shape), False
    while not over:
      action = choose(observation.tobytes(), learning.ways(env).tobytes())
      observation, reward, over, _, _ = env.step(action)
      total += reward
    held += bool((total > 0).all())
  return held / games


def constrained(seed: int, updates: int, games: int) -> Dict[str, Any]:
  """The threshold utility of joint particles, and of their marginals alone.

  Actions that lead nowhere are left out: with no price on time, waiting is
  worth as much as the best way.
  """
  env = learning.environment("constrained")
  steps = learning.random_steps(env, 20_000, seed, only_ways=True)
  limits = ",".join(map(str, LIMITS))
  score = utility_names.parse_score(f"threshold:{limits}", accrued=True)
  product = ProductOfMarginals(score.utility, accrued=True)
  found: Dict[str, Any] = {"best": best_probability(env.unwrapped)}
  first, _ = env.reset()
  for kind, chosen in (("joint", score), ("product", product)):
    made = learning.learner("joint", "constrained", score=chosen)
    made.learn(steps, steps["reward"], seed, updates, evaluate=False)

    @tf.function(autograph=False)
    def of(observation, agent=made.agent, chosen=chosen):
      output, _ = agent.return_network(observation)
      seen = chosen.see(ReturnDistribution.of(output), observation)
      return chosen(seen, tf.zeros([]))[0]

    @functools.cache
    def choose(text: bytes, ways: bytes, of=of) -> int:
      observation = np.frombuffer(text, np.float32)
      scores = of(tf.constant(observation[np.newaxis])).numpy()
      allowed = np.frombuffer(ways, np.int32) > 0
      return int(np.argmax(np.where(allowed, scores, -np.inf)))

    scores = of(tf.constant(first[np.newaxis])).numpy()
    found[kind] = {
      "reached": success(env, choose, games, seed),
      "believed": [round(float(one), 3) for one in scores],
    }
  return found


@dataclasses.dataclass(frozen=True)
class ProductOfMarginals(utilities.UtilityScore):
  """prod_i P(G_i >= c_i): what marginals alone can say."""

  utility: utilities.Threshold
  accrued: bool = False

  def __call__(self, distributions, uniform):
    """[B, A] products."""
    del uniform
    holds = distributions.values >= tf.constant(self.utility.limits)
    share = tf.reduce_mean(tf.cast(holds, tf.float32), axis=-2)
    return tf.reduce_prod(share, axis=-1)


def esr(seed: int, updates: int) -> Dict[str, Any]:
  """Which action begins the best policy, by each criterion."""
  env = learning.environment("two_steps")
  steps = learning.random_steps(env, 5000, seed)
  first, _ = env.reset()
  found: Dict[str, Any] = {}
  for criterion in ("esr", "ser"):
    score = utility_names.parse_score(
      "chebyshev:1,1", criterion, accrued=criterion == "esr"
    )
    made = learning.learner("joint", "two_steps", score=score)
    made.learn(steps, steps["reward"], seed, updates, evaluate=False)
    returns = at_start(made.agent, first)
    seen = score.see(returns, tf.constant(first[np.newaxis]))
    scores = score(seen, tf.zeros([])).numpy()[0]
    found[criterion] = {
      "scores": [round(float(one), 3) for one in scores],
      "chosen": ["gamble", "sure"][int(np.argmax(scores))],
    }
  return found


def main() -> None:
  """Runs a study and prints what it found, a line for each seed."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("study", choices=("laws", "constrained", "esr"))
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--updates", type=int, default=2000)
  parser.add_argument("--mazes", default="exclusive,inclusive")
  parser.add_argument("--games", type=int, default=2000)
  parser.add_argument(
    "-o",
    "--out",
    type=pathlib.Path,
    default=pathlib.Path("joint.jsonl"),
    help="file of rows; what is there is not learnt again",
  )
  args = parser.parse_args()
  args.out.touch()
  done = [json.loads(line) for line in args.out.read_text().splitlines()]
  names = args.mazes.split(",") if args.study == "laws" else (None,)
  for name in names:
    for seed in map(int, args.seeds.split(",")):
      key = {"study": args.study, "maze": name, "seed": seed}
      key["updates"] = args.updates
      if any(key.items() <= row.items() for row in done):
        continue
      tf.keras.utils.set_random_seed(seed)
      if args.study == "laws":
        found = laws(name, seed, args.updates)
      elif args.study == "esr":
        found = esr(seed, args.updates)
      else:
        found = constrained(seed, args.updates, args.games)
      row = json.dumps({**key, "found": found})
      with args.out.open("a") as file:
        file.write(row + "\n")
      print(row, flush=True)


if __name__ == "__main__":
  main()
