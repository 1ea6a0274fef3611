"""Rewards of Atari games, taken apart by what they are paid for.

MD3QN (Zhang et al., 2021) learns joint returns in six games whose events pay
different amounts, so that a step's reward says what was paid for: 10 for a
pellet of Ms. Pac-Man, 50 for a power pellet, multiples of 100 for ghosts.
"""

from typing import Tuple

import numpy as np

from tf_mmdrl.core import errors, game_names

# Game -> the amounts of its sources of reward, the largest first.
SOURCES = {
  "AirRaid": (100, 75, 50, 25),
  "Asteroids": (100, 50, 20),
  "Gopher": (100, 20),
  "MsPacman": (100, 50, 10),
  "Pong": (1, -1),
  "UpNDown": (200, 100, 10),
}


def sources(game: str) -> Tuple[int, ...]:
  """The amounts of a game's sources, from any spelling of its name."""
  keys = {game_names.key(name): amounts for name, amounts in SOURCES.items()}
  key = game_names.key(game)
  if key not in keys:
    raise errors.UserError(
      f"environment.split_rewards is known for {', '.join(SOURCES)}, got"
      f" {game!r}; set environment.split_rewards=false"
    )
  return keys[key]


def split(rewards: np.ndarray, amounts: Tuple[int, ...]) -> np.ndarray:
  """Rewards as parts that sum to them.

  As much as can be goes to the first source, as a multiple of its amount, then
  to the next. What is left, if several events made a sum that has no such
  parts, goes to the last one of its sign.

  Args:
    rewards: [B].
    amounts: of each of D sources, the largest first.

  Returns:
    [B, D] float32.
  """
  parts = np.zeros([len(rewards), len(amounts)], np.float32)
  left = np.asarray(rewards, np.float64).copy()
  for index, amount in enumerate(amounts):
    count = np.maximum(np.floor(left / amount), 0)
    parts[:, index] = count * amount
    left -= parts[:, index]
  negative = [i for i, amount in enumerate(amounts) if amount < 0]
  positive = [i for i, amount in enumerate(amounts) if amount > 0]
  parts[:, positive[-1]] += np.where(left > 0, left, 0)
  parts[:, (negative or positive)[-1]] += np.where(left < 0, left, 0)
  return parts
