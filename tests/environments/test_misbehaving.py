"""What an environment should not give is said in one line."""

import gymnasium
import misbehaving  # noqa: F401  (registers an environment)
import numpy as np
import pytest
from gymnasium import vector

from tf_mmdrl import environments
from tf_mmdrl.environments import checked

_SAID = {
  "raises": r"raised RuntimeError \(the simulator\) in step",
  "shape": r"observation must be of shape \(2,\) and float32, it is an array of"
  r" shape \(3,\)",
  "dtype": "observation must be .* float32, it is an array of .*<U1",
  "ragged": "observation must be .* float32",
  "array_reward": r"reward must be a number, it is an array of shape \(2,\)",
  "text_reward": "reward must be a number, it is '5'",
  "none_reward": "reward must be a number, it is None",
  "complex_reward": "reward must be a number, it is 1j",
  "text_end": "terminated must be true or false, it is 'no'",
  "four_parts": "step must return an observation, a reward",
  "nothing": "step must return an observation, a reward",
}


@pytest.mark.parametrize("num_envs", [None, 2])
@pytest.mark.parametrize("fault", sorted(_SAID))
def test_each_fault_is_said_in_one_line(fault, num_envs):
  env = environments.load(
    "Misbehaving-v0",
    fault=fault,
    at=3,
    num_envs=num_envs,
    seed=0,
    disable_env_checker=True,
  )
  action = np.zeros([] if num_envs is None else [num_envs], np.int64)
  for _ in range(3):
    env.step(action)
  with pytest.raises(checked.MisbehavedError, match=_SAID[fault]) as raised:
    env.step(action)
    env.step(action)
  assert "\n" not in str(raised.value)


class Kinds(gymnasium.Env):
  """Returns what is a little different from what it said, as many do."""

  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, space, observation, reward):
    self.observation_space = space
    self._result = observation, reward

  def reset(self, *, seed=None, options=None):
    """The observation."""
    return self._result[0], {}

  def step(self, action):
    """The observation and the reward."""
    return *self._result, np.False_, 0, {}


@pytest.mark.parametrize("reward", [1, True, np.float32(1), np.array(1.0)])
@pytest.mark.parametrize(
  "space, observation",
  [
    (gymnasium.spaces.Box(0, 9, [2], np.float32), np.ones(2)),
    (gymnasium.spaces.Box(0, 9, [2], np.float32), [1, 1]),
    (gymnasium.spaces.Discrete(3), 1),
    (gymnasium.spaces.Discrete(3), np.int32(1)),
    (gymnasium.spaces.MultiBinary(2), np.ones(2, bool)),
  ],
)
def test_what_is_only_of_another_width_is_taken(space, observation, reward):
  env = environments.GymnasiumWrapper(
    vector.SyncVectorEnv([lambda: Kinds(space, observation, reward)])
  )
  step = env.reset()
  assert np.all(step.observation == 1)
  step = env.step(np.zeros(1, np.int64))
  assert np.all(step.observation == 1) and step.reward == [1]


def test_a_number_that_would_lose_its_fraction_is_refused():
  space = gymnasium.spaces.Box(0, 9, [2], np.uint8)
  env = environments.GymnasiumWrapper(Kinds(space, np.full(2, 0.5), 0.0))
  with pytest.raises(checked.MisbehavedError, match="uint8, it is an array"):
    env.reset()


def test_parts_of_a_nested_observation_are_checked():
  spaces = gymnasium.spaces
  space = spaces.Dict(
    a=spaces.Discrete(2), b=spaces.Tuple([spaces.Discrete(2)])
  )
  good = {"a": 1, "b": (1,)}
  checked.check_observation(good, space)
  for bad in ({"a": 1}, {"a": 0.5, "b": (1,)}, {"a": 1, "b": ()}, (1, (1,))):
    with pytest.raises(checked.MisbehavedError):
      checked.check_observation(bad, space)


def test_a_call_under_way_is_timed():
  assert checked.longest_call() == 0
  assert checked.calling(checked.longest_call) > 0
  with pytest.raises(checked.MisbehavedError, match="raised ZeroDivision"):
    checked.calling(lambda: 1 / 0)
  assert checked.longest_call() == 0


def test_an_environment_that_cannot_be_made_is_told():
  with pytest.raises(environments.environment.errors.UserError, match="KeyErr"):
    environments.load("Misbehaving-v0", fault="unheard of")
