"""Emulators that are stepped exactly as the code of MMDQN's authors does it.

`Emulators` takes the place of ale-py's vector environment for protocols that
are `exact`. It is slower, because Python steps one emulator after the other,
but it does what the vector environment cannot:

* a game starts with 1 to `noop_max` agent steps of no-op, not emulator frames;
* a lost life stops the frame skip, and the picture of that step is the one of
  the step before, because the authors' code does not look at the screen then;
* a game that is cut off is terminal, and agent steps are what is counted;
* the state can be saved.
"""

from typing import Any, Optional

import ale_py
import numpy as np
from ale_py import roms

from tf_mmdrl.core import errors
from tf_mmdrl.environments.atari_protocols import Protocol

_POOLED = 2  # frames, the last of an agent step
_LEAST_OVERLAP = 1e-3  # of a pixel; OpenCV leaves out less


class Emulators:
  """B games of one kind, each with an emulator of its own.

  The methods are those of `AtariVectorEnv` and its `ale` that
  `AtariEnvironment` calls. A game is reset at the step after its end.
  """

  def __init__(self, rom: str, num_envs: int, protocol: Protocol):
    """Loads the games; none is started."""
    self._rom = rom
    self._games = [Emulator(rom, protocol) for _ in range(num_envs)]
    self._results: list[tuple[int, bool]] = []

  def get_action_set(self) -> list[ale_py.Action]:
    """What the numbers of actions mean."""
    return self._games[0].actions

  def reset(
    self, *, seed: Optional[np.ndarray]
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts all games.

    Args:
      seed: [B] seeds, from which all that is random starts afresh.

    Returns:
      [B, 1, screen_size, screen_size] pictures, and info.
    """
    for index, game in enumerate(self._games):
      if seed is not None:
        game.seed(int(seed[index]))
      game.reset()
    return self._pictures(), self._info()

  def send(self, actions: np.ndarray, strengths: np.ndarray) -> None:
    """Plays one step of all games; `strengths` of paddles are always full."""
    del strengths
    self._results = []
    for game, action in zip(self._games, actions):
      if game.over:
        game.reset()
        self._results.append((0, False))
      else:
        reward = game.step(action)
        self._results.append((reward, game.over))

  def recv(
    self,
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Pictures, [B] rewards, terminated and truncated, and info."""
    rewards, terminated = map(np.array, zip(*self._results))
    truncated = np.zeros_like(terminated)  # the authors know no such thing
    return self._pictures(), rewards, terminated, truncated, self._info()

  def close(self) -> None:
    """Lets go of the emulators."""
    self._games = []

  def get_state(self) -> dict[str, Any]:
    """The exact state, of plain values and arrays."""
    return {
      "rom": self._rom,
      "games": [game.get_state() for game in self._games],
    }

  def set_state(self, state: dict[str, Any]) -> None:
    """Goes on as the games that gave this state would have."""
    wanted = len(state["games"]), state["rom"]
    if wanted != (len(self._games), self._rom):
      raise errors.UserError(
        f"this state is of {wanted[0]} x {wanted[1]!r}, but here is"
        f" {len(self._games)} x {self._rom!r}; load the same environment with"
        " the same options"
      )
    for game, part in zip(self._games, state["games"]):
      game.set_state(part)

  def _pictures(self) -> np.ndarray:
    return np.stack([game.picture() for game in self._games])[:, None]

  def _info(self) -> dict[str, np.ndarray]:
    every = [
      (game.lives, game.life_lost, *game.frame_numbers())
      for game in self._games
    ]
    names = ("lives", "life_lost", "frame_number", "episode_frame_number")
    return dict(zip(names, map(np.array, zip(*every))))


class Emulator:
  """An emulator that plays one game.

  Attributes:
    actions: what the numbers of actions mean.
    lives: how many lives are left.
    life_lost: whether the last step lost a life.
    over: whether the game has ended or was cut off.
  """

  def __init__(self, rom: str, protocol: Protocol):
    """Loads the game, with no seed."""
    self._protocol = protocol
    self._path: Any = roms.get_rom_path(rom)
    self._max_steps = -(-protocol.max_frames // protocol.frame_skip)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat("repeat_action_probability", protocol.sticky_actions)
    self._ale.setInt("frame_skip", 1)
    self._ale.setInt("max_num_frames_per_episode", 0)  # cut off here
    self._ale.loadROM(self._path)
    self._generator = np.random.default_rng()
    self.actions: list[ale_py.Action] = (
      self._ale.getLegalActionSet()
      if protocol.full_action_space
      else self._ale.getMinimalActionSet()
    )
    shape = self._ale.getScreenDims()
    self._screens = np.zeros([_POOLED, *shape], np.uint8)
    self._shrink = AreaShrinker(shape, protocol.screen_size)
    self.lives, self.life_lost = 0, False
    self._steps, self.over = 0, False

  def seed(self, seed: int) -> None:
    """Makes the next games depend on this seed alone."""
    self._ale.setInt("random_seed", seed)
    self._ale.loadROM(self._path)  # only then does the emulator take its seed
    self._generator = np.random.default_rng(seed)

  def reset(self) -> None:
    """Starts a game. One that ends within the no-ops is started again."""
    self._start()
    most = self._protocol.noop_max
    for _ in range(self._generator.integers(1, most + 1) if most else 0):
      self._play(ale_py.Action.NOOP)
      if self._is_stopped():
        self._start()
    self.life_lost = False
    self._steps, self.over = 0, False

  def step(self, action: int) -> int:
    """Plays an agent step; the sum of its rewards."""
    reward = self._play(self.actions[action])
    self._steps += 1
    self.over = self._ale.game_over() or self._steps >= self._max_steps
    return reward

  def picture(self) -> np.ndarray:
    """[screen_size, screen_size] uint8."""
    return self._shrink(self._screens.max(axis=0))

  def frame_numbers(self) -> tuple[int, int]:
    """Frames since the emulator was loaded, and since the game began."""
    return self._ale.getFrameNumber(), self._ale.getEpisodeFrameNumber()

  def get_state(self) -> dict[str, Any]:
    """The exact state, of plain values and arrays."""
    system = self._ale.cloneSystemState().serialize()
    return {
      "system": np.frombuffer(system, np.uint8),
      "generator": self._generator.bit_generator.state,
      "screens": self._screens,
      "lives": self.lives,
      "life_lost": self.life_lost,
      "steps": self._steps,
      "over": self.over,
    }

  def set_state(self, state: dict[str, Any]) -> None:
    """Goes on as the game that gave this state would have.

    The emulator's own screen is not part of it. It has been drawn anew when an
    agent step next looks at it, for that is after its third frame or later.
    """
    system = ale_py.ALEState(state["system"].tobytes())
    self._ale.restoreSystemState(system)
    self._generator.bit_generator.state = state["generator"]
    self._screens = state["screens"].copy()
    self.lives, self.life_lost = state["lives"], state["life_lost"]
    self._steps, self.over = state["steps"], state["over"]

  def _start(self) -> None:
    self._ale.reset_game()
    self.lives = self._ale.lives()
    self._ale.getScreenGrayscale(self._screens[0])
    self._screens[1] = 0

  def _play(self, action: ale_py.Action) -> int:
    """Plays the frames of one action, until a life is lost."""
    reward, before = 0, self._protocol.frame_skip - _POOLED
    self.life_lost = False
    for frame in range(self._protocol.frame_skip):
      reward += self._ale.act(action)
      lives = self._ale.lives()
      self.life_lost |= lives < self.lives
      self.lives = lives
      if self._is_stopped():
        break  # with screens of the step before, as in the authors' code
      if frame >= before:
        self._ale.getScreenGrayscale(self._screens[frame - before])
    return reward

  def _is_stopped(self) -> bool:
    stops = self.life_lost and self._protocol.life_loss
    return stops or self._ale.game_over()


class AreaShrinker:
  """Makes grey pictures smaller; each pixel is the mean of what it covers.

  The sums are those of OpenCV's INTER_AREA, in the same order and precision, so
  that the results are the same bit for bit.
  """

  def __init__(self, shape: tuple[int, int], size: int):
    """Prepares for pictures of `shape`, to become [size, size]."""
    if size > min(shape):
      raise errors.UserError(
        f"screen_size must be at most {min(shape)}, the smaller side of the"
        f" screen, got {size}; exact protocols only make pictures smaller"
      )
    self._rows = _covered(shape[0], size)
    self._columns = _covered(shape[1], size)

  def __call__(self, picture: np.ndarray) -> np.ndarray:
    """[*shape] uint8 -> [size, size] uint8."""
    across = np.zeros([], np.float32)
    for columns, weights in self._columns:
      across = across + np.take(picture, columns, axis=1) * weights
    down = np.zeros([], np.float32)
    for rows, weights in self._rows:
      down = down + np.take(across, rows, axis=0) * weights[:, None]
    return np.rint(down).astype(np.uint8)


def _covered(length: int, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
  """Which of `length` pixels each of `size` larger ones covers.

  Returns:
    For the first, second, ... that they cover, [size] places and float32
    weights; the weight is 0 for those that cover fewer.
  """
  scale = length / size
  starts = np.arange(size) * scale
  covered = []
  for ordinal in range(int(np.ceil(scale)) + 1):
    places = np.floor(starts + _LEAST_OVERLAP).astype(np.int64) + ordinal
    overlaps = np.minimum(starts + scale, places + 1) - np.maximum(
      starts, places
    )
    weights = np.where(overlaps > _LEAST_OVERLAP, overlaps / scale, 0)
    if weights.any():
      places = np.minimum(places, length - 1)
      covered.append((places, weights.astype(np.float32)))
  return covered
