"""Rewards that were earned so far, as a part of observations.

What a vector of returns is worth may depend on what was earned before: the
first fish is worth more than the tenth. Then the best action depends on it, too
(Roijers, Steckelmacher and Nowe, "Multi-Objective Reinforcement Learning for
the Expected Utility of the Return", 2018), and an agent must see it.
"""

from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium import spaces

from tf_mmdrl.core import errors

_MOST = 4096  # numbers of an observation; pictures have more


class AccruedRewards(gymnasium.Wrapper):
  """Appends D discounted sums of rewards, and gamma^t, to observations.

  Attributes:
    observation_space: float32 vectors: the observation (integers one-hot), what
      was earned of each return, sum over k < t of gamma^k r_k, and gamma^t.
  """

  def __init__(self, env: gymnasium.Env, gamma: float):
    """Wraps an environment with vector rewards.

    Args:
      env: with observations that are not pictures.
      gamma: the agent's discount.
    """
    super().__init__(env)
    space = getattr(env.unwrapped, "reward_space", None)
    if space is None or len(space.shape) != 1:
      raise errors.UserError(
        "agent.accrued wants an environment whose rewards are vectors, this"
        " one's are numbers; set agent.accrued=false"
      )
    size = spaces.flatdim(env.observation_space)
    if size > _MOST:
      raise errors.UserError(
        f"agent.accrued wants observations of at most {_MOST} numbers, to which"
        f" it adds the rewards earned, got {size}; pictures are not supported"
      )
    self._gamma = gamma
    self._earned = np.zeros(space.shape, np.float64)
    self._discount = 1.0
    length = size + len(self._earned) + 1
    infinite = np.full([length], np.inf, np.float32)
    self.observation_space = spaces.Box(-infinite, infinite)

  def reset(
    self, *, seed: Optional[int] = None, options: Optional[dict] = None
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts an episode with nothing earned."""
    observation, info = self.env.reset(seed=seed, options=options)
    self._earned, self._discount = np.zeros_like(self._earned), 1.0
    return self._with_rewards(observation), info

  def step(self, action: Any) -> tuple[np.ndarray, Any, bool, bool, dict]:
    """Plays one step."""
    observation, reward, terminated, truncated, info = self.env.step(action)
    self._earned = self._earned + self._discount * np.asarray(reward)
    self._discount *= self._gamma
    seen = self._with_rewards(observation)
    return seen, reward, terminated, truncated, info

  def _with_rewards(self, observation: Any) -> np.ndarray:
    flat = spaces.flatten(self.env.observation_space, observation)
    seen = [np.ravel(flat), self._earned, np.array([self._discount])]
    return np.concatenate(seen).astype(np.float32)
