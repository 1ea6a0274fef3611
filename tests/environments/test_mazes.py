"""Mazes with vector rewards, and vector rewards of Gymnasium environments."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tf_mmdrl.core import errors
from tf_mmdrl.environments import make_environment, mazes
from tf_mmdrl.environments.accrued_rewards import AccruedRewards


class Pair(gymnasium.Env):
  """Three steps of (1, t); the reward's form can be broken."""

  observation_space = spaces.Discrete(3)
  action_space = spaces.Discrete(2)
  reward_space = spaces.Box(0, 9, (2,))

  def __init__(self, broken=False):
    self._broken = broken

  def reset(self, *, seed=None, options=None):
    """Starts."""
    super().reset(seed=seed)
    self._time = 0
    return 0, {}

  def step(self, action):
    """Goes on."""
    self._time += 1
    reward = [1.0] if self._broken else np.array([1.0, self._time])
    return min(self._time, 2), reward, self._time == 3, False, {}


gymnasium.register("tests/Pair-v0", entry_point=f"{__name__}:Pair")


def _played(env, actions):
  """The reward of each step, and whether the episode ended with the last."""
  env.reset()
  rewards = []
  for action in actions:
    _, reward, over, _, _ = env.step(action)
    rewards.append(reward)
  return np.array(rewards), over


_U, _L, _DOWN, _R = range(4)


def test_a_fork_of_the_exclusive_maze_pays_one_source():
  env = mazes.Maze("exclusive")
  rewards, over = _played(env, [_R, _DOWN, _DOWN, _R] + [_R, _DOWN, _R, _DOWN])
  paid = rewards > 0
  np.testing.assert_array_equal(paid[:4], [[1, 0], [0, 0], [0, 1], [0, 0]])
  np.testing.assert_array_equal(paid.sum(0), [3, 1])
  assert over
  first, second = rewards[paid[:, 0], 0], rewards[paid[:, 1], 1]
  assert ((first >= 0.2) & (first <= 0.6)).all()
  assert ((second >= 0.4) & (second <= 0.9)).all()


def test_a_fork_of_the_inclusive_maze_pays_both_or_neither():
  env = mazes.Maze("inclusive")
  pays, empty = [_R, _R, _DOWN], [_DOWN, _R, _R]
  rewards, over = _played(env, pays + empty + pays)
  np.testing.assert_array_equal((rewards > 0).sum(0), [2, 2])
  assert over


def test_walls_closed_cells_and_one_way_doors(monkeypatch):
  env = mazes.Maze("exclusive")
  env.reset()
  before = env._observation()
  seen, reward, over, _, _ = env.step(_U)  # a wall
  np.testing.assert_array_equal(seen, before)
  assert not reward.any() and not over
  env.step(_R)
  assert env.open_ways((0, 1), []) == [_DOWN]  # no way back through the door
  two_way = mazes.Map("S-.\n| |\n.-E", ((1.0, 1.0),), {})
  monkeypatch.setitem(mazes.MAPS, "two_way", two_way)
  env = mazes.Maze("two_way")
  assert sorted(env.open_ways((0, 1), [])) == [_L, _DOWN]
  env.reset()
  env.step(_R)
  assert not env.step(_L)[2] and env._position == (0, 1)  # the start is closed
  assert env.step(_DOWN)[2]


def test_chance_decides_in_the_constrained_maze():
  env = mazes.Maze("constrained")
  env.reset(seed=1)
  both = []
  for _ in range(300):
    rewards, over = _played(env, [_R] * 5 + [_DOWN] + [_R])
    both.append(rewards[:, 0].sum() * rewards[:, 1].sum())
  assert 0.4 < np.mean(both) < 0.6
  assert env.outcomes((2, 1), _U, []) == [(0.5, (2, 2)), (0.5, (3, 1))]


def test_features_and_pictures():
  grid = mazes.Maze("exclusive")
  seen, _ = grid.reset()
  planes = seen.reshape([4, 5, 5])
  assert planes[0, 0, 0] == 1 and planes[0].sum() == 1
  assert planes[2].sum() == 4 and planes[3].sum() == 4
  seen = grid.step(_R)[0].reshape([4, 5, 5])
  assert seen[1, 0, 0] == 1 and seen[2].sum() == 3
  pictures = make_environment("maze/exclusive/pixels", num_envs=2, seed=0)
  first = pictures.reset().observation
  assert first.shape == (2, 84, 84, 3) and first.dtype == np.uint8
  second = pictures.step(np.array([_R, _U])).observation
  assert (first[0] != second[0]).any() and (first[1] == second[1]).all()


@pytest.mark.parametrize("name", ["maze/inclusive", "fishwood-v0"])
def test_batched_steps_are_vectors_and_states_exact(name):
  if name == "fishwood-v0":
    pytest.importorskip("mo_gymnasium")
  env = make_environment(name, num_envs=3, seed=4)
  assert env.reward_spec().shape == (2,)
  step = env.reset()
  assert step.reward.shape == (3, 2) and not step.reward.any()
  rng = np.random.default_rng(0)

  last = env.action_spec().maximum

  def play():
    actions = [rng.integers(last + 1, size=3) for _ in range(30)]
    return [env.step(action).reward for action in actions]

  assert np.sum(play()) > 0
  state, rng = json.dumps(env.get_state()), np.random.default_rng(5)
  wanted, rng = play(), np.random.default_rng(5)
  env.set_state(json.loads(state))
  np.testing.assert_array_equal(play(), wanted)
  env.close()


def test_what_was_earned_is_seen():
  wrapped = AccruedRewards(Pair(), gamma=0.5)
  seen, _ = wrapped.reset()
  np.testing.assert_allclose(seen, [1, 0, 0, 0, 0, 1])
  wrapped.step(0)
  np.testing.assert_allclose(wrapped.step(0)[0], [0, 0, 1, 1.5, 2.0, 0.25])
  np.testing.assert_allclose(wrapped.reset()[0], [1, 0, 0, 0, 0, 1])
  env = make_environment("tests/Pair-v0", num_envs=2, seed=0, accrued_gamma=0.5)
  env.reset()
  assert env.get_state()
  np.testing.assert_allclose(
    env.step(np.array([0, 1])).observation, [[0, 1, 0, 1, 1, 0.5]] * 2
  )


def _step(env):
  env.reset()
  return env.step(np.zeros([1] if env.batched else [], np.int64))


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: make_environment("maze/nowhere"), "unknown maze 'nowhere'"),
    (lambda: make_environment("maze/exclusive/x"), "exclusive/pixels"),
    (
      lambda: make_environment("CartPole-v1", accrued_gamma=0.9),
      "rewards are vectors",
    ),
    (
      lambda: make_environment("maze/exclusive/pixels", accrued_gamma=0.9),
      "pictures are not supported",
    ),
    (
      lambda: make_environment("MinAtar/Breakout", accrued_gamma=0.9),
      "vectors",
    ),
    (
      lambda: _step(make_environment("tests/Pair-v0", broken=True)),
      "vector of 2 numbers",
    ),
    (
      lambda: _step(make_environment("tests/Pair-v0", num_envs=1, broken=True)),
      "vector of 2 numbers",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
