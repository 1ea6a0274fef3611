"""Rewards of Atari games as vectors."""

import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.environments import make_environment, reward_parts


@pytest.mark.parametrize(
  "game, reward, wanted",
  [
    ("Pong", 1, [1, 0]),
    ("pong", -1, [0, -1]),
    ("ALE/Pong-v5", 0, [0, 0]),
    ("MsPacman", 10, [0, 0, 10]),
    ("MsPacman", 260, [200, 50, 10]),
    ("Asteroids", 60, [0, 50, 10]),  # three times 20, which has no such parts
    ("AirRaid", 175, [100, 75, 0, 0]),
    ("UpNDown", 410, [400, 0, 10]),
    ("Gopher", 120, [100, 20]),
  ],
)
def test_parts_by_amount(game, reward, wanted):
  found = reward_parts.split(np.array([reward]), reward_parts.sources(game))
  np.testing.assert_array_equal(found, [wanted])


@pytest.mark.parametrize("amounts", reward_parts.SOURCES.values())
def test_parts_sum_to_the_reward(amounts):
  rewards = np.arange(-400, 2000, 7)
  np.testing.assert_allclose(
    reward_parts.split(rewards, amounts).sum(axis=1), rewards
  )


def test_pong_pays_two_sources_and_clips_each():
  env = make_environment("Pong", num_envs=2, seed=0, split_rewards=True)
  assert env.reward_spec().shape == (2,)
  assert env.reset().reward.shape == (2, 2)
  lost = np.zeros([2, 2])
  for _ in range(120):  # nobody returns the ball
    step = env.step(np.zeros([2], np.int64))
    lost += step.reward
    np.testing.assert_array_equal(step.reward, env.raw_reward)
  env.close()
  assert (lost[:, 1] < 0).all() and (lost[:, 0] == 0).all()


@pytest.mark.parametrize("name", ["Breakout", "CartPole-v1"])
def test_other_games_have_no_parts(name):
  with pytest.raises(errors.UserError, match="split_rewards"):
    make_environment(name, num_envs=1, split_rewards=True)
