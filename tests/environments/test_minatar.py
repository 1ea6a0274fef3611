"""MinAtar games through the package of that name."""

import importlib.util
import sys

import numpy as np
import pytest
from gymnasium.utils import env_checker
from tf_agents.environments import utils

from tf_mmdrl.core import errors
from tf_mmdrl.environments import minatar

needs_package = pytest.mark.skipif(
  importlib.util.find_spec("minatar") is None, reason="extra minatar"
)
_CHANNELS = {
  "Asterix": 4,
  "Breakout": 4,
  "Freeway": 7,
  "Seaquest": 10,
  "SpaceInvaders": 6,
}


def _play(env, steps=200, seed=0):
  shape = (steps, env.batch_size) if env.batched else (steps,)
  high = env.action_spec().maximum + 1
  actions = np.random.RandomState(seed).randint(high, size=shape)
  steps = [env.step(action) for action in actions]
  return [np.stack(field) for field in zip(*steps)]


def _same(left, right):
  return all(np.array_equal(a, b) for a, b in zip(left, right))


@needs_package
@pytest.mark.parametrize("game", minatar.GAMES)
@pytest.mark.parametrize("num_envs", [None, 2])
def test_validates(game, num_envs):
  env = minatar.load(game, num_envs=num_envs, seed=0, max_episode_steps=100)
  spec = env.observation_spec()
  assert spec.shape == (10, 10, _CHANNELS[game])
  assert (spec.dtype, spec.maximum) == (np.uint8, 1)
  assert env.action_spec().num_values == 6
  utils.validate_py_environment(env, episodes=2)


@needs_package
@pytest.mark.parametrize("game", minatar.GAMES)
def test_gymnasium_checks(game):
  env_checker.check_env(minatar.MinAtar(game), skip_render_check=True)


@needs_package
@pytest.mark.parametrize("game", minatar.GAMES)
def test_equals_the_package(game):
  """The same stream of random numbers, the same game."""
  import minatar as package

  env = minatar.load(game, seed=5)
  time_step = env.reset()
  reference = package.Environment(minatar.GAMES[game])
  reference.seed(int(np.random.default_rng(5).integers(2**32)))
  reference.reset()
  for action in np.random.RandomState(0).randint(6, size=300):
    np.testing.assert_array_equal(time_step.observation, reference.state())
    if time_step.is_last():
      reference.reset()
      time_step = env.step(action)
      continue
    reward, terminal = reference.act(action)
    time_step = env.step(action)
    assert time_step.reward == reward
    assert time_step.is_last() == terminal


@needs_package
@pytest.mark.parametrize("game", minatar.GAMES)
def test_resume_and_rebuild(game):
  env, other = minatar.load(game, seed=1), minatar.load(game, seed=2)
  _play(env, 150)
  _play(other, 20)
  other.set_state(env.get_state())
  assert _same(_play(env, seed=1), _play(other, seed=1))

  fresh = minatar.load(game, seed=1)
  env.rebuild(3)
  fresh.rebuild(3)
  assert _same(_play(env, seed=1), _play(fresh, seed=1))


@needs_package
def test_seeds():
  streams = [_play(minatar.load("asterix", seed=seed)) for seed in (1, 1, 2)]
  assert _same(streams[0], streams[1])
  assert not _same(streams[0], streams[2])


@needs_package
def test_options():
  env = minatar.load("breakout", minimal_actions=True, render_mode="rgb_array")
  assert env.action_spec().num_values == 3
  env.reset()
  picture = env.render()
  assert (picture.shape, picture.dtype) == ((160, 160, 3), np.uint8)
  # Background, bricks and paddle; the ball starts among the bricks.
  assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 3


@pytest.mark.parametrize(
  "name", ["SpaceInvaders", "space_invaders", "MinAtar/SpaceInvaders-v1"]
)
@needs_package
def test_forgiving_names(name):
  assert minatar.load(name).observation_spec().shape == (10, 10, 6)


def test_unknown_game_names_the_nearest():
  with pytest.raises(errors.UserError, match="Breakout"):
    minatar.load("Brekout")


def test_missing_package_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, "minatar", None)
  with pytest.raises(errors.UserError, match=r"pip install .*\[minatar\]"):
    minatar.load("Breakout")
