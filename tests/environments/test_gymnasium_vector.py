"""Gymnasium vector environments as batched TF-Agents environments."""

import functools

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces, vector
from tf_agents.environments import tf_py_environment, utils
from tf_agents.specs import array_spec

from tf_mmdrl import environments
from tf_mmdrl.core import errors


class Countdown(gymnasium.Env):
  """Ends after `length` steps: terminated where that is even."""

  observation_space = spaces.Discrete(10)
  action_space = spaces.Discrete(2)

  def __init__(self, length):
    self._length = length

  def reset(self, *, seed=None, options=None):
    self._left = self._length
    return self._left, {}

  def step(self, action):
    self._left -= 1
    done, even = self._left == 0, self._length % 2 == 0
    return self._left, 1.0, done and even, done and not even, {}


def _vector(kind=vector.SyncVectorEnv, **options):
  makers = [functools.partial(Countdown, length) for length in (2, 3)]
  return kind(makers, **options)


@pytest.mark.parametrize("kind", [vector.SyncVectorEnv, vector.AsyncVectorEnv])
def test_each_environment_ends_by_itself(kind):
  with environments.GymnasiumWrapper(_vector(kind)) as env:
    steps = [env.reset(), *(env.step(np.array([0, 1])) for _ in range(5))]
  np.testing.assert_array_equal(
    [s.step_type for s in steps],
    [[0, 0], [1, 1], [2, 1], [0, 2], [1, 0], [2, 1]],
  )
  np.testing.assert_array_equal(
    [s.reward for s in steps],
    [[0, 0], [1, 1], [1, 1], [0, 1], [1, 0], [1, 1]],
  )
  np.testing.assert_array_equal(
    [s.discount for s in steps],
    [[1, 1], [1, 1], [0, 1], [1, 1], [1, 1], [0, 1]],
  )
  np.testing.assert_array_equal(
    [s.observation for s in steps],
    [[2, 3], [1, 2], [0, 1], [2, 0], [1, 3], [0, 2]],
  )


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_make_vec(mode):
  with environments.load(
    "CartPole-v1", num_envs=3, seed=0, vectorization_mode=mode
  ) as env:
    assert env.batched and env.batch_size == 3
    utils.validate_py_environment(env, episodes=4)


@pytest.mark.parametrize(
  "env_id", ["Blackjack-v1", "FrozenLake-v1", "Pendulum-v1", "Taxi-v4"]
)
def test_validates(env_id):
  env = environments.load(env_id, num_envs=2, seed=0, max_episode_steps=30)
  utils.validate_py_environment(env, episodes=3)


def test_every_space(space, sampled_env):
  makers = [functools.partial(sampled_env, space)] * 2
  env = environments.GymnasiumWrapper(vector.SyncVectorEnv(makers), seed=1)
  time_step_spec = array_spec.add_outer_dims_nest(env.time_step_spec(), (2,))
  tf_env = tf_py_environment.TFPyEnvironment(env)
  rng = np.random.RandomState(0)
  for _ in range(6):
    # TF-Agents cannot draw a batch of integers whose bounds are arrays.
    actions = [
      array_spec.sample_spec_nest(env.action_spec(), rng) for _ in range(2)
    ]
    stacked = tf.nest.map_structure(lambda *parts: np.stack(parts), *actions)
    array_spec.assert_arrays_spec_nest(env.step(stacked), time_step_spec)
    assert tf_env.step(stacked).step_type.shape == (2,)


def _stream(seed, mode):
  options = {"num_envs": 2, "seed": seed, "vectorization_mode": mode}
  with environments.load("FrozenLake-v1", **options) as env:
    actions = np.random.RandomState(3).randint(4, size=(100, 2))
    return [env.step(action).observation.tolist() for action in actions]


def test_equal_seeds_equal_episodes():
  assert _stream(1, "sync") == _stream(1, "async")
  assert _stream(1, "sync") != _stream(2, "sync")


@pytest.mark.parametrize(
  "action, message",
  [
    ([0, 2], "within"),
    ([0], "shape"),
    (0, "shape"),
    ([0.0, 1.0], "must be int64"),
  ],
)
def test_bad_actions(action, message):
  env = environments.GymnasiumWrapper(_vector())
  env.reset()
  with pytest.raises(errors.UserError, match=message):
    env.step(np.array(action))


@pytest.mark.parametrize("mode", ["SAME_STEP", "DISABLED"])
def test_other_autoreset_modes(mode):
  env = _vector(autoreset_mode=vector.AutoresetMode[mode])
  with pytest.raises(errors.UserError, match=mode):
    environments.GymnasiumWrapper(env)


def test_unknown_environment_names_the_nearest():
  with pytest.raises(errors.UserError, match="CartPole-v1"):
    environments.load("CartPol-v1", num_envs=2)
