"""Small Gymnasium environments of every kind of space."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces


class SampledEnv(gymnasium.Env):
  """Draws observations from its space; the first action is kept for tests."""

  def __init__(self, observation_space, action_space, length=5):
    self.observation_space = observation_space
    self.action_space = action_space
    self._length = length
    self.actions = []

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    if seed is not None:
      self.observation_space.seed(seed)
    self._steps = 0
    return self.observation_space.sample(), {"steps": 0}

  def step(self, action):
    assert self.action_space.contains(action), action
    self.actions.append(action)
    self._steps += 1
    done = self._steps == self._length
    info = {"steps": self._steps}
    return self.observation_space.sample(), 1.0, done, False, info


SPACES = {
  "box": spaces.Box(-2.0, 3.0, (2, 3), np.float32),
  "box_bounds": spaces.Box(
    np.array([-1.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32)
  ),
  "box_uint8": spaces.Box(0, 255, (4, 4, 1), np.uint8),
  "box_float64": spaces.Box(-1.0, 1.0, (3,), np.float64),
  "box_bool": spaces.Box(0, 1, (3,), bool),
  "discrete": spaces.Discrete(4),
  "discrete_start": spaces.Discrete(3, start=-1),
  "multi_discrete": spaces.MultiDiscrete([3, 5, 2]),
  "multi_discrete_start": spaces.MultiDiscrete([3, 5], start=[1, -2]),
  "multi_binary": spaces.MultiBinary([2, 3]),
  "dict": spaces.Dict(
    {"b": spaces.Discrete(3), "a": spaces.Box(0.0, 1.0, (2,), np.float32)}
  ),
  "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(3))),
  "nested": spaces.Dict(
    {
      "pair": spaces.Tuple(
        (spaces.Discrete(2), spaces.Dict({"x": spaces.MultiDiscrete([2, 3])}))
      )
    }
  ),
}


@pytest.fixture(params=sorted(SPACES))
def space(request):
  return SPACES[request.param]


@pytest.fixture
def sampled_env():
  """Makes an environment with the space given for both sides."""

  def make(space, **options):
    return SampledEnv(space, space, **options)

  return make
