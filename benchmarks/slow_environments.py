"""CartPole that takes 20 ms a step, as a simulator does."""

import time

import gymnasium
from gymnasium.envs.classic_control import cartpole


class SlowCartPole(cartpole.CartPoleEnv):
  """Sleeps before each step."""

  def step(self, action):
    """Plays one step."""
    time.sleep(0.02)
    return super().step(action)


gymnasium.register("SlowCartPole-v0", entry_point=SlowCartPole)
