"""The five MinAtar games (Young and Tian, 2019): Atari in miniature.

They need the MinAtar package: `pip install "tf-mmdrl[minatar]"`.
"""

from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium import spaces

from tf_mmdrl.core import game_names, optional
from tf_mmdrl.environments import gymnasium_wrapper
from tf_mmdrl.environments.names import MINATAR_GAMES as GAMES

_NUM_ACTIONS = 6
_CELL = 16  # pixels of a rendered cell, each way
# One colour for nothing and one for each channel; Seaquest has ten.
_COLOURS = np.array(
  [
    [0, 0, 0],
    [86, 180, 233],
    [230, 159, 0],
    [120, 120, 120],
    [0, 158, 115],
    [213, 94, 0],
    [240, 228, 66],
    [204, 121, 167],
    [0, 114, 178],
    [160, 220, 120],
    [255, 255, 255],
  ],
  np.uint8,
)


class MinAtar(gymnasium.Env):
  """One MinAtar game.

  Observations are [10, 10, C] uint8 of zeros and ones: a channel for each
  kind of object. Actions: nothing, left, up, right, down, fire.
  """

  metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}

  def __init__(
    self,
    game: str,
    *,
    sticky_actions: float = 0.1,
    difficulty_ramping: bool = True,
    minimal_actions: bool = False,
    render_mode: Optional[str] = None,
  ):
    """Makes a game.

    Args:
      game: one of `GAMES`, in any spelling.
      sticky_actions: the probability that the previous action is repeated.
      difficulty_ramping: whether a game becomes harder as it goes on.
      minimal_actions: only the actions that the game reacts to.
      render_mode: `"rgb_array"` for `render`.
    """
    self._game = _package().Environment(
      game_names.find("MinAtar game", game, GAMES),
      sticky_actions,
      difficulty_ramping,
    )
    self._seeded = False
    self._actions = (
      self._game.minimal_action_set()
      if minimal_actions
      else list(range(_NUM_ACTIONS))
    )
    self.render_mode = render_mode
    self.action_space = spaces.Discrete(len(self._actions))
    shape = tuple(self._game.state_shape())
    self.observation_space = spaces.Box(0, 1, shape, np.uint8)

  def reset(
    self, *, seed: Optional[int] = None, options: Optional[dict] = None
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts a game; with a seed, the last game's action is not repeated."""
    super().reset(seed=seed)
    if seed is not None or not self._seeded:
      self._game.seed(int(self.np_random.integers(2**32)))
      self._game.last_action = 0
      self._seeded = True
    self._game.reset()
    return self._observation(), {}

  def step(
    self, action: int
  ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
    """Plays one step."""
    reward, terminated = self._game.act(self._actions[action])
    return self._observation(), float(reward), terminated, False, {}

  def render(self) -> Optional[np.ndarray]:
    """[160, 160, 3] uint8; see `picture`."""
    if self.render_mode is None:
      return None
    return picture(self._observation())

  def _observation(self) -> np.ndarray:
    return self._game.state().astype(np.uint8)


def picture(observation: np.ndarray) -> np.ndarray:
  """An observation in colours; of objects in one cell the last channel shows.

  Args:
    observation: [10, 10, C] of zeros and ones.

  Returns:
    [160, 160, 3] uint8.
  """
  channels = np.arange(1, observation.shape[-1] + 1)
  numbers = np.max(observation * channels, axis=-1)
  return _COLOURS[np.kron(numbers, np.ones((_CELL, _CELL), numbers.dtype))]


def load(
  game: str,
  *,
  num_envs: Optional[int] = None,
  seed: Optional[int] = None,
  **options: Any,
) -> gymnasium_wrapper.GymnasiumWrapper:
  """Loads a MinAtar game for TF-Agents.

  Args:
    game: `"Breakout"`, `"space_invaders"`, `"MinAtar/Asterix-v1"`, ...
    num_envs: B, to step that many games at once.
    seed: equal seeds and actions give equal games.
    **options: those of `MinAtar`, and `max_episode_steps`.

  Returns:
    The environment; batched if `num_envs` was given.
  """
  module = game_names.find("MinAtar game", game, GAMES)
  _package()  # says what to install, where Gymnasium would not
  return gymnasium_wrapper.load(
    ENV_IDS[module], num_envs=num_envs, seed=seed, **options
  )


def _package() -> Any:
  return optional.require("minatar", use="MinAtar games", extra="minatar")


# The module of each game -> the id it is registered under.
ENV_IDS = {
  module: f"tf_mmdrl/MinAtar{game}-v0" for game, module in GAMES.items()
}
for _module, _env_id in ENV_IDS.items():
  gymnasium.register(
    _env_id, entry_point=f"{__name__}:MinAtar", kwargs={"game": _module}
  )
