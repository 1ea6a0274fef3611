"""The chain MDP of the paper's tabular experiments (Section 4.1)."""

from typing import Any, Optional

import gymnasium
from gymnasium import spaces

from tf_mmdrl.core import errors

ENV_ID = "tf_mmdrl/Chain-v0"
FORWARD, BACKWARD = 0, 1
_FOLLOWS = 0.9  # how often the chain does what the action says


class Chain(gymnasium.Env):
  """K states in a row, from s_0 to the terminal s_{K-1}.

  Forward moves one state ahead with probability 0.9 and back to s_0 with 0.1;
  backward has the probabilities exchanged. Arriving at s_0, from s_0 itself
  too, costs 1, arriving at s_{K-1} gives 1. The paper discounts by 0.9.

  Observations are the number of the state, actions 0 (forward) and 1.
  """

  metadata: dict[str, Any] = {"render_modes": []}

  def __init__(self, length: int = 10):
    """Makes a chain.

    Args:
      length: K, at least 2. (In a chain of one state the first state is the
        terminal one, and an episode has no step to show.)
    """
    if length < 2:
      raise errors.UserError(
        f"a chain needs at least 2 states, a start and an end, got {length}"
      )
    self.length = length
    self.observation_space = spaces.Discrete(length)
    self.action_space = spaces.Discrete(2)
    self._state = 0

  def reset(
    self, *, seed: Optional[int] = None, options: Optional[dict] = None
  ) -> tuple[int, dict[str, Any]]:
    """Starts at s_0."""
    super().reset(seed=seed)
    self._state = 0
    return self._state, {}

  def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
    """Moves ahead or back to s_0."""
    follows = self.np_random.random() < _FOLLOWS
    ahead = follows == (action == FORWARD)
    self._state = self._state + 1 if ahead else 0
    terminated = self._state == self.length - 1
    reward = 1.0 if terminated else 0.0 if ahead else -1.0
    return self._state, reward, terminated, False, {}


gymnasium.register(ENV_ID, entry_point=f"{__name__}:Chain")
