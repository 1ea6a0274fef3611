"""Gymnasium environments under TF-Agents' contract."""

import importlib.util
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tf_agents.environments import tf_py_environment, utils
from tf_agents.specs import array_spec

from tf_mmdrl import environments
from tf_mmdrl.core import errors

_LAST = 2

# Different spaces, none of which needs an extra package.
ENV_IDS = [
  "Acrobot-v1",
  "Blackjack-v1",
  "CartPole-v1",
  "CliffWalking-v1",
  "FrozenLake-v1",
  "FrozenLake8x8-v1",
  "MountainCar-v0",
  "MountainCarContinuous-v0",
  "Pendulum-v1",
  "Taxi-v4",
]


class Scripted(gymnasium.Env):
  """Ends after two steps, the way the action says: 0 neither, 1, 2, 3 both."""

  observation_space = spaces.Discrete(10)
  action_space = spaces.Discrete(4)
  render_mode = "rgb_array"

  def reset(self, *, seed=None, options=None):
    self.buffer = np.zeros((), np.int64)
    self.seeds = [*getattr(self, "seeds", []), seed]
    return self.buffer, {}

  def step(self, action):
    self.buffer += 1
    terminated, truncated = action in (1, 3), action in (2, 3)
    return self.buffer, 2.5, terminated, truncated, {"action": action}

  def render(self):
    return np.full((2, 2, 3), 7, np.uint8)

  def close(self):
    self.closed = True


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_validates(env_id):
  env = environments.load(env_id, seed=0, max_episode_steps=50)
  utils.validate_py_environment(env, episodes=3)
  assert not env.batched


def test_every_space_validates_and_reaches_the_environment(space, sampled_env):
  env = sampled_env(space)
  utils.validate_py_environment(environments.GymnasiumWrapper(env), episodes=2)
  assert env.actions  # each was checked against the Gymnasium space


def test_every_space_under_tf_py_environment(space, sampled_env):
  env = environments.GymnasiumWrapper(sampled_env(space), seed=1)
  tf_env = tf_py_environment.TFPyEnvironment(env)
  tf_env.reset()
  rng = np.random.RandomState(0)
  for _ in range(6):
    action = array_spec.sample_spec_nest(env.action_spec(), rng, (1,))
    time_step = tf_env.step(action)
  assert time_step.is_first()  # 5 steps an episode


@pytest.mark.parametrize(
  "action, step_type, discount",
  [(0, 1, 1.0), (1, _LAST, 0.0), (2, _LAST, 1.0), (3, _LAST, 0.0)],
)
def test_episode_ends(action, step_type, discount):
  env = environments.GymnasiumWrapper(Scripted())
  first = env.reset()
  assert (first.step_type, first.reward, first.discount) == (0, 0.0, 1.0)
  step = env.step(np.array(action))
  assert step.step_type == step_type
  assert step.discount == discount
  assert step.reward == np.float32(2.5)
  after = env.step(np.array(0))
  if step_type == _LAST:
    assert (after.step_type, after.reward, after.discount) == (0, 0.0, 1.0)
    assert env.get_info() == {}
  else:
    assert after.step_type == 1
    assert env.get_info() == {"action": 0}


def test_observations_are_not_changed_by_later_steps():
  env = environments.GymnasiumWrapper(Scripted())
  kept = [env.reset().observation] + [env.step(0).observation for _ in range(3)]
  np.testing.assert_array_equal(kept, [0, 1, 2, 3])


def test_seed_render_close():
  inner = Scripted()
  with environments.GymnasiumWrapper(inner, seed=5) as env:
    env.reset()
    env.reset()
    env.seed(9)
    env.reset()
    assert inner.seeds == [5, None, 9]
    assert env.render().shape == (2, 2, 3)
    with pytest.raises(errors.UserError, match="render_mode='human'"):
      env.render("human")
  assert inner.closed


def _stream(seed):
  env = environments.load("FrozenLake-v1", seed=seed)  # slippery: random
  actions = np.random.RandomState(3).randint(4, size=200)
  return [int(env.step(action).observation) for action in actions]


def test_equal_seeds_equal_episodes():
  assert _stream(1) == _stream(1)
  assert _stream(1) != _stream(2)


def test_specs_have_the_spaces_bounds_and_dtypes(space, sampled_env):
  env = environments.GymnasiumWrapper(sampled_env(space), seed=0)
  spec = env.action_spec()
  if isinstance(space, (spaces.Dict, spaces.Tuple)):
    assert isinstance(spec, dict if isinstance(space, spaces.Dict) else tuple)
    return
  assert spec.dtype == (np.int8 if space.dtype == bool else space.dtype)
  assert spec.shape == space.shape
  for bound in (spec.minimum, spec.maximum):
    edge = np.broadcast_to(bound, spec.shape).astype(space.dtype)
    assert space.contains(edge if edge.shape else edge[()])
  if space.dtype.kind == "i":
    beyond = np.broadcast_to(spec.maximum + 1, spec.shape).astype(spec.dtype)
    assert not space.contains(beyond if beyond.shape else beyond[()])


def test_names_of_nested_specs():
  space = spaces.Dict({"a": spaces.Tuple((spaces.Discrete(2),))})
  spec = environments.spec_from_space(space, "observation")
  assert spec["a"][0].name == "observation/a/0"


def test_space_without_an_array():
  with pytest.raises(errors.UserError, match="Text spaces have no"):
    environments.spec_from_space(spaces.Text(4), "observation")


@pytest.mark.parametrize(
  "env_id, action, message",
  [
    ("CartPole-v1", 2, "within"),
    ("CartPole-v1", -1, "within"),
    ("CartPole-v1", 0.0, "must be int64, got float64"),
    ("CartPole-v1", [0], "shape"),
    ("CartPole-v1", "left", "must be int64"),
    ("Pendulum-v1", [np.nan], "within"),
    ("Pendulum-v1", [2.5], "within"),
    ("Pendulum-v1", 1.0, "shape"),
  ],
)
def test_bad_actions(env_id, action, message):
  env = environments.load(env_id)
  env.reset()
  with pytest.raises(errors.UserError, match=message):
    env.step(np.array(action))


@pytest.mark.parametrize(
  "action, message",
  [
    ({"a": 1}, r"keys \['a', 'b'\]"),
    (3, "dict"),
    ({"a": np.zeros(2), "b": 7}, "action/b must lie within"),
  ],
)
def test_bad_nested_actions(sampled_env, action, message):
  space = spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)})
  env = environments.GymnasiumWrapper(sampled_env(space))
  env.reset()
  with pytest.raises(errors.UserError, match=message):
    env.step(action)


def test_bad_tuple_action(sampled_env):
  space = spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))
  env = environments.GymnasiumWrapper(sampled_env(space))
  env.reset()
  with pytest.raises(errors.UserError, match="tuple of 2 parts"):
    env.step((1,))


@pytest.mark.parametrize(
  "env_id, message",
  [
    ("CartPol-v1", "CartPole-v1"),
    ("CartPole-v7", "CartPole-v1"),
    ("cartpole-v1", "CartPole-v1"),
  ],
)
def test_unknown_environment_names_the_nearest(env_id, message):
  with pytest.raises(errors.UserError, match=message):
    environments.load(env_id)


@pytest.mark.skipif(
  importlib.util.find_spec("Box2D") is not None, reason="Box2D is there"
)
def test_missing_extra_says_what_to_install():
  with pytest.raises(errors.UserError, match=r"pip install.*gymnasium\[mujoco"):
    environments.load("Ant-v5")


class Talkative(Scripted):
  """Warns of bounds whose digits are lost, as Gymnasium does, and of more."""

  def __init__(self, warn):
    bound = np.array([1 / 3])
    self.observation_space = spaces.Box(-bound, bound, dtype=np.float32)
    if warn:
      gymnasium.logger.warn("the ice is thin")

  def reset(self, *, seed=None, options=None):
    return np.zeros(1, np.float32), {}


gymnasium.register("Talkative-v0", Talkative)


@pytest.mark.parametrize("num_envs", [None, 2])
def test_only_what_can_be_acted_on_is_warned_of(num_envs):
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    environments.load("Talkative-v0", num_envs=num_envs, warn=False)
  with pytest.warns(UserWarning, match="the ice is thin"):
    environments.load("Talkative-v0", num_envs=num_envs, warn=True)
