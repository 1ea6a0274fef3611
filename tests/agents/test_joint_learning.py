"""What joint particles learn of mazes that marginals cannot say.

Short forms of `benchmarks/joint.py`; the settings were chosen on seed 101.
"""

import functools
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))

import joint  # noqa: E402
import joint_distances as distances  # noqa: E402
import joint_learning as learning  # noqa: E402

from tf_mmdrl.environments import mazes  # noqa: E402

_SEEDS = (30, 31, 32)


@pytest.fixture(autouse=True)
def _first_weights():
  """The same whatever ran before; a learner is made once for all its seeds."""
  tf.keras.utils.set_random_seed(0)


@functools.cache
def _played(name):
  """2,000 returns, and how far their own marginals are if independent.

  These marginals are those of the random policy, better than any that are
  learnt.
  """
  reference = distances.Reference(
    learning.monte_carlo(mazes.Maze(name), 2000, 1)
  )
  parts = list(learning.monte_carlo(mazes.Maze(name), 2000, 2).T)
  return reference, reference.distances(distances.independent(parts, 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("name", ["exclusive", "inclusive"])
def test_the_joint_law_is_nearer_than_independent_marginals(name, seed):
  maze = mazes.Maze(name)
  played, best = _played(name)
  steps = learning.random_steps(maze, 20_000, seed)
  made = learning.learner("joint", name)
  made.learn(steps, steps["reward"], seed, 1500, evaluate=True)
  learnt = joint.of_random_policy(joint.at_start(made.agent, maze.reset()[0]))
  found = played.distances(learnt)
  print(name, seed, found, best)
  np.testing.assert_allclose(learnt.mean(0), played.sample.mean(0), rtol=0.25)
  assert found["energy"] < best["energy"]
  assert found["correlation"] < best["correlation"] / 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", _SEEDS)
def test_limits_that_hold_together_want_the_joint_law(seed):
  found = joint.constrained(seed, updates=4000, games=2000)
  print(seed, found)
  assert found["best"] == 0.5
  assert found["joint"]["reached"] > 0.9 * found["best"]
  assert found["product"]["reached"] < 0.9 * found["best"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20, 21, 22])
def test_expected_utility_and_utility_of_the_expectation_differ(seed):
  found = joint.esr(seed, updates=2000)
  print(seed, found)
  assert found["esr"]["chosen"] == "sure"
  assert found["ser"]["chosen"] == "gamble"
