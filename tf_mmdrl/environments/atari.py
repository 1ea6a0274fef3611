"""Atari 2600 games at C++ speed: `ale_py`'s vector environment for TF-Agents.

The emulators and the preprocessing run in ale-py's threads. This adapter stacks
the pictures, turns steps into TF-Agents' time steps, keeps the raw rewards
beside the clipped ones, ends episodes at life losses for learning only, and
checks actions, since ale-py waits forever on one that is out of range. For
protocols that are `exact` it does the same on top of `exact_atari`.
"""

import dataclasses
from typing import Any, Optional

import gymnasium
import numpy as np
from ale_py import vector_env
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import errors, game_names
from tf_mmdrl.environments import (
  environment,
  exact_atari,
  names,
  reward_parts,
  snapshot,
  spaces,
)
from tf_mmdrl.environments.atari_protocols import (
  AUTHORS_EVALUATION,
  AUTHORS_TRAINING,
  PAPER_EVALUATION,
  PAPER_TRAINING,
  PROTOCOLS,
  STICKY_EVALUATION,
  STICKY_TRAINING,
  Protocol,
)

__all__ = [
  "AUTHORS_EVALUATION",
  "AUTHORS_TRAINING",
  "PAPER_EVALUATION",
  "PAPER_TRAINING",
  "PROTOCOLS",
  "STICKY_EVALUATION",
  "STICKY_TRAINING",
  "AtariEnvironment",
  "Protocol",
  "load",
  "rom_id",
]


class AtariEnvironment(environment.Environment):
  """B games of one kind, stepped together.

  Observations are [B, screen_size, screen_size, stack] uint8, and read-only.
  Beside ale-py's own `lives`, `frame_number` and `episode_frame_number`,
  `get_info()` has
    raw_reward: [B] float32, the rewards of this step before clipping.
    score: [B] float64, the sum of a game's raw rewards so far.
    game_over: [B] bool, whether the step is LAST; `score[game_over]` are the
      scores of whole games.
    life_lost: [B] bool, whether this step lost a life.
  so an info observer of TF-Agents' PyDriver and Actor needs nothing else.
  """

  def __init__(
    self,
    game: str,
    *,
    num_envs: int,
    num_threads: int = 0,
    seed: Optional[int] = None,
    protocol: Protocol = PAPER_TRAINING,
  ):
    """Makes the games; see `load`."""
    super().__init__(seed=seed, handle_auto_reset=False)
    if num_envs < 1:
      raise errors.UserError(f"num_envs must be at least 1, got {num_envs}")
    self.protocol = protocol
    rom = rom_id(game)
    self._amounts = (
      reward_parts.sources(game) if protocol.split_rewards else None
    )
    self._env: Any
    self._ale: Any
    if protocol.exact:
      self._env = exact_atari.Emulators(rom, num_envs, protocol)
      self._ale = self._env
    else:
      self._env = _vector_env(rom, num_envs, num_threads, protocol)
      self._ale = self._env.ale
    self._batch = (num_envs,)
    self._strengths = np.ones(self._batch, np.float32)  # of paddles: full
    self.seed(seed)
    size = protocol.screen_size
    self._observation_spec = array_spec.BoundedArraySpec(
      (size, size, protocol.stack), np.uint8, 0, 255, "observation"
    )
    self._action_spec = spaces.spec_from_space(
      gymnasium.spaces.Discrete(len(self._ale.get_action_set())), "action"
    )

  @property
  def batched(self) -> bool:
    """True: all games step together."""
    return True

  @property
  def batch_size(self) -> int:
    """B, the number of games."""
    return self._batch[0]

  @property
  def raw_reward(self) -> np.ndarray:
    """[B] float32 rewards of the last step, before clipping; or [B, D]."""
    return self._parts(self._info["raw_reward"])

  def observation_spec(self) -> types.NestedArraySpec:
    """[screen_size, screen_size, stack] uint8."""
    return self._observation_spec

  def reward_spec(self) -> types.NestedArraySpec:
    """A number, or a vector with a part for each source of reward."""
    shape = () if self._amounts is None else (len(self._amounts),)
    return array_spec.ArraySpec(shape, np.float32, "reward")

  def action_spec(self) -> types.NestedArraySpec:
    """[] int64, from 0 to the number of actions - 1."""
    return self._action_spec

  def action_meanings(self) -> list[str]:
    """What each action does, for example `["NOOP", "FIRE", "RIGHT"]`."""
    return [action.name for action in self._ale.get_action_set()]

  def seed(self, seed: types.Seed) -> None:
    """Makes the next `reset` start the stream of this seed."""
    super().seed(seed)
    self._next_seed = None if seed is None else self._seed_at(0)

  def close(self) -> None:
    """Closes the games."""
    self._env.close()

  def get_state(self) -> dict[str, Any]:
    """The exact state, if the protocol is `exact`."""
    if not self.protocol.exact:
      raise self._no_state("lies in ale-py's emulators, which cannot give it")
    step, games = self._current_time_step, None
    if step is not None:
      games = {
        "emulators": self._env.get_state(),
        "time_step": tuple(step),
        "info": self._info,
      }
    return {
      "games": snapshot.capture(games),
      "next_seed": snapshot.capture(self._next_seed),
    }

  def set_state(self, state: dict[str, Any]) -> None:
    """Continues exactly as the environment that gave this state would have."""
    if not self.protocol.exact:
      raise self._no_state("lies in ale-py's emulators, which cannot take it")
    self._next_seed = snapshot.restore(None, state["next_seed"])
    games = snapshot.restore(None, state["games"])
    if games is None:  # not yet begun
      self._current_time_step = None
      return
    self._env.set_state(games["emulators"])
    self._current_time_step = ts.TimeStep(*games["time_step"])
    self._info = games["info"]
    self._stacks = self._current_time_step.observation
    self._stacks.setflags(write=False)
    self._lives, self._score = self._info["lives"], self._info["score"]

  def _seed_at(self, boundary: int) -> np.ndarray:
    # One seed a game. Not ale-py's seed, seed + 1, ...: there the games of
    # neighbouring seeds would be the same ones.
    return environment.derive_seeds(self._seed, boundary, self.batch_size)

  def _reset(self) -> ts.TimeStep:
    pictures: np.ndarray
    pictures, info = self._env.reset(seed=self._next_seed)
    self._next_seed = None
    none = np.zeros(self._batch, bool)
    self._lives = info["lives"]
    self._score = np.zeros(self._batch)
    shape = self._batch + self._observation_spec.shape
    self._stacks = np.zeros(shape, np.uint8)
    outcome = np.zeros(self._batch), none, none
    return self._time_step(pictures, *outcome, info, first=~none)

  def _step(self, action: types.NestedArray) -> ts.TimeStep:
    action = spaces.check_array(
      np.asarray(action), self._action_spec, self._batch
    )
    # ale-py resets a game at the step after its end, as TF-Agents does.
    first = self._info["game_over"]
    self._ale.send(action, self._strengths)
    self._stacks = _shifted(self._stacks)  # while ale-py's threads play
    return self._time_step(*self._ale.recv(), first=first)

  def _time_step(
    self,
    pictures: np.ndarray,
    reward: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    info: dict[str, Any],
    *,
    first: np.ndarray,
  ) -> ts.TimeStep:
    raw_reward = reward.astype(np.float32)
    score = self._score + raw_reward
    # An emulator that plays frame by frame knows better than two counts do.
    life_lost = info.get("life_lost", info["lives"] < self._lives)
    game_over = terminated | truncated
    step_type = np.where(game_over, ts.StepType.LAST, ts.StepType.MID)
    self._stacks[..., -1] = pictures[:, 0]
    if self.protocol.exact and self.protocol.life_loss:
      self._stacks[life_lost & ~game_over, ..., :-1] = 0
    if first.any():
      self._stacks[first, ..., :-1] = 0
      score[first], life_lost[first] = 0, False
      step_type[first] = ts.StepType.FIRST
    self._stacks.setflags(write=False)  # the next step reads them again
    self._lives, self._score = info["lives"], score
    self._info = {
      **info,
      "raw_reward": raw_reward,
      "score": score,
      "game_over": game_over,
      "life_lost": life_lost,
    }
    over = terminated | life_lost if self.protocol.life_loss else terminated
    reward = self._parts(raw_reward)
    return ts.TimeStep(
      step_type,
      # Rewards are whole numbers: clipped to [-1, 1] they are their sign.
      np.sign(reward) if self.protocol.clip_rewards else reward,
      (~over).astype(np.float32),
      self._stacks,
    )

  def _parts(self, rewards: np.ndarray) -> np.ndarray:
    """[B] rewards, or [B, D] if they are taken apart."""
    if self._amounts is None:
      return rewards
    return reward_parts.split(rewards, self._amounts)


def _shifted(stacks: np.ndarray) -> np.ndarray:
  """A copy of [B, H, W, stack] pictures without the oldest.

  The place of the newest, `[..., -1]`, is still to be filled. All bytes one
  place to the left move every pixel's stack by one; it is several times faster
  than to transpose what ale-py would have stacked.
  """
  shifted = np.empty_like(stacks)
  shifted.reshape(-1)[:-1] = stacks.reshape(-1)[1:]
  return shifted


def _vector_env(
  rom: str, num_envs: int, num_threads: int, protocol: Protocol
) -> vector_env.AtariVectorEnv:
  return vector_env.AtariVectorEnv(
    rom,
    num_envs,
    num_threads=num_threads,
    frameskip=protocol.frame_skip,
    maxpool=protocol.max_pool,
    img_height=protocol.screen_size,
    img_width=protocol.screen_size,
    stack_num=1,  # stacked here
    # ale-py draws from 0 to noop_max - 1.
    noop_max=protocol.noop_max + 1,
    repeat_action_probability=protocol.sticky_actions,
    max_num_frames_per_episode=protocol.max_frames,
    full_action_space=protocol.full_action_space,
    # Clipping and life losses are done here: ale-py would keep no raw reward,
    # and reset the game at each life loss.
    reward_clipping=False,
    episodic_life=False,
    use_fire_reset=False,
  )


def load(
  game: str,
  *,
  num_envs: int = 8,
  num_threads: int = 0,
  seed: Optional[int] = None,
  protocol: Protocol = PAPER_TRAINING,
  **changes: Any,
) -> AtariEnvironment:
  """Loads a batch of Atari games.

  Args:
    game: the game's name in any of the usual spellings: `"Breakout"`,
      `"space_invaders"`, `"ALE/Pong-v5"`.
    num_envs: B, how many games are played at once.
    num_threads: threads that step them; 0 means one for each core. The games
      do not depend on it, and exact protocols do without threads.
    seed: for no-ops and sticky actions. Equal seeds and actions give equal
      games; each of the B games has a seed of its own.
    protocol: for example `PAPER_TRAINING` or `AUTHORS_EVALUATION`.
    **changes: fields of the protocol to change, for example `noop_max=0`.

  Returns:
    The batched environment.
  """
  fields = [field.name for field in dataclasses.fields(Protocol)]
  for name in changes:
    if name not in fields:
      raise errors.unknown_name("Atari option", name, fields)
  return AtariEnvironment(
    game,
    num_envs=num_envs,
    num_threads=num_threads,
    seed=seed,
    protocol=dataclasses.replace(protocol, **changes),
  )


def rom_id(game: str) -> str:
  """ale-py's id for a game, `"space_invaders"`, from any spelling of it."""
  return game_names.find("Atari game", game, names.atari_games())
