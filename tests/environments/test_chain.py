"""The chain MDP: its probabilities, its rewards, its end."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import env_checker
from tf_agents.environments import utils

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import chain_environment


def test_gymnasium_checks():
  env_checker.check_env(
    gymnasium.make(chain_environment.ENV_ID, length=4).unwrapped
  )


@pytest.mark.parametrize("num_envs", [None, 3])
def test_validates(num_envs):
  env = environments.load(
    chain_environment.ENV_ID, num_envs=num_envs, length=4, seed=0
  )
  assert env.observation_spec().maximum == 3
  utils.validate_py_environment(env, episodes=3)


@pytest.mark.parametrize(
  "action, ahead",
  [(chain_environment.FORWARD, 0.9), (chain_environment.BACKWARD, 0.1)],
)
def test_probabilities_and_rewards(action, ahead):
  env = chain_environment.Chain(5)
  state, _ = env.reset(seed=0)
  moved, steps = 0, 20_000
  for _ in range(steps):
    before = state
    state, reward, terminated, truncated, _ = env.step(action)
    assert state in (before + 1, 0)
    assert not truncated
    assert terminated == (state == 4)
    assert reward == {0: -1.0, 4: 1.0}.get(state, 0.0)
    moved += state == before + 1
    if terminated:
      state, _ = env.reset()
      assert state == 0
  # Five standard deviations of a binomial frequency.
  assert abs(moved / steps - ahead) < 5 * np.sqrt(0.09 / steps)


def test_shortest_chain():
  """With two states each step ends the episode or costs 1."""
  env = chain_environment.Chain(2)
  env.reset(seed=0)
  outcomes = set()
  for _ in range(50):
    state, reward, terminated, _, _ = env.step(chain_environment.FORWARD)
    outcomes.add((state, reward, terminated))
    if terminated:
      env.reset()
  assert outcomes == {(1, 1.0, True), (0, -1.0, False)}


@pytest.mark.parametrize("length", [1, 0, -3])
def test_too_short(length):
  with pytest.raises(errors.UserError, match="at least 2 states"):
    chain_environment.Chain(length)


def test_resumes_exactly():
  envs = [
    environments.load(chain_environment.ENV_ID, seed=seed) for seed in (1, 2)
  ]
  for _ in range(40):
    envs[0].step(0)
  envs[1].set_state(envs[0].get_state())
  streams = [[int(e.step(0).observation) for _ in range(99)] for e in envs]
  assert streams[0] == streams[1]
