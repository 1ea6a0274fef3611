"""What every environment here can do beyond TF-Agents' `PyEnvironment`.

A run that is stopped and resumed must equal one that was not. There are two
ways to that, and every environment has at least the second:

* `get_state` and `set_state`, where the state can be saved exactly. States
  consist of plain JSON values, so a checkpoint needs no pickle.
* `rebuild(boundary)`: starts all games anew from a seed derived from
  `(seed, boundary)`. Where a training loop does this at the same boundaries
  whether or not it was interrupted, a resumed run can start at the last one.
"""

from typing import Any, Optional

import numpy as np
from tf_agents.environments import py_environment
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import errors


class Environment(py_environment.PyEnvironment):
  """A `PyEnvironment` with seeds, raw rewards and a way to resume."""

  def __init__(self, *, seed: Optional[int], handle_auto_reset: bool):
    super().__init__(handle_auto_reset=handle_auto_reset)
    self._seed = seed
    self._next_seed: Any = seed
    self._info: dict[str, Any] = {}

  @property
  def raw_reward(self) -> np.ndarray:
    """[] or [B] float32 rewards of the last step, before any clipping.

    Vector rewards are [D] or [B, D].

    A score is their sum up to a LAST step: LAST is always the end of a whole
    game, whatever counts as an end for learning.
    """
    return self.current_time_step().reward

  def get_info(self) -> dict[str, Any]:
    """The info dict of the last reset or step."""
    return self._info

  def seed(self, seed: types.Seed) -> None:
    """Makes the next `reset` start the stream of this seed."""
    self._seed = self._next_seed = seed

  def rebuild(self, boundary: int) -> ts.TimeStep:
    """Starts anew; what follows depends on (seed, boundary) and actions only.

    Args:
      boundary: a whole number that counts the boundaries of a run.

    Returns:
      The FIRST time step.
    """
    if self._seed is None:
      raise errors.UserError(
        "rebuild needs an environment with a seed, this one has none; pass"
        " seed=... when loading it"
      )
    self._next_seed = self._seed_at(boundary)
    return self.reset()

  def get_state(self) -> Any:
    """The exact state as plain JSON values, or an error that says why not."""
    raise self._no_state("is not known")

  def set_state(self, state: Any) -> None:
    """Continues exactly as the environment that gave this state would have."""
    raise self._no_state("is not known")

  def _seed_at(self, boundary: int) -> Any:
    return int(derive_seeds(self._seed, boundary, 1)[0])

  def _no_state(self, reason: str) -> errors.UserError:
    return errors.UserError(
      f"the state of {type(self).__name__} cannot be saved: it {reason};"
      " resume at a boundary with rebuild(boundary) instead"
    )


def derive_seeds(seed: Any, boundary: int, count: int) -> np.ndarray:
  """[count] int64 seeds within 31 bits that depend on (seed, boundary)."""
  sequence = np.random.SeedSequence(seed, spawn_key=(boundary,))
  return (sequence.generate_state(count, np.uint32) >> 1).astype(np.int64)
