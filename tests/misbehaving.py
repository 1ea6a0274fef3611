"""Environments that do what none should, each from a given step on.

Importing this registers `Misbehaving-v0`, with `fault` and `at`, and for each
fault `Misbehaving_FAULT-v0`, which `mmdrl train` can be given as
`misbehaving:Misbehaving_FAULT-v0`. `Unseeded-v0` and `Clock-v0` play well.
"""

import time

import gymnasium
import numpy as np


def _fail():
  raise RuntimeError("the simulator\nis gone")


# What `step` returns instead, of the five parts that it should.
FAULTS = {
  "raises": lambda good: _fail(),
  "shape": lambda good: (np.zeros(3, np.float32), *good[1:]),
  "dtype": lambda good: (np.array(["a", "b"]), *good[1:]),
  "ragged": lambda good: ([[1.0], [1.0, 2.0]], *good[1:]),
  "array_reward": lambda good: (good[0], np.ones(2), *good[2:]),
  "text_reward": lambda good: (good[0], "5", *good[2:]),
  "none_reward": lambda good: (good[0], None, *good[2:]),
  "complex_reward": lambda good: (good[0], 1j, *good[2:]),
  "text_end": lambda good: (*good[:2], "no", *good[3:]),
  "four_parts": lambda good: good[:4],
  "nothing": lambda good: None,
  "nan_reward": lambda good: (good[0], float("nan"), *good[2:]),
  "huge_reward": lambda good: (good[0], 1e30, *good[2:]),
  "hangs": lambda good: time.sleep(3600),
  "endless": lambda good: (*good[:2], False, False, {}),
  "endless_huge": lambda good: (good[0], 1e30, False, False, {}),
}


class Misbehaving(gymnasium.Env):
  """Well for `at` steps of the process, in all episodes together."""

  observation_space = gymnasium.spaces.Box(-1.0, 1.0, [2], np.float32)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, fault, at=40):
    self._give, self._at = FAULTS[fault], at
    self.steps = 0

  def reset(self, *, seed=None, options=None):
    """Begins an episode of ten steps."""
    super().reset(seed=seed)
    return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

  def step(self, action):
    """Plays well, or not."""
    self.steps += 1
    seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
    good = (seen, float(action), self.steps % 10 == 0, False, {})
    return good if self.steps <= self._at else self._give(good)


class Unseeded(Misbehaving):
  """Draws from generators that no seed reaches."""

  def __init__(self):
    super().__init__("nothing", at=1 << 62)

  def step(self, action):
    """Plays well, but nobody can play the same again."""
    _, *rest = super().step(action)
    seen = np.random.default_rng().uniform(-1, 1, 2)
    return seen.astype(np.float32), *rest


class Clock(Misbehaving):
  """Asks for the time, and does nothing with it."""

  def __init__(self):
    super().__init__("nothing", at=1 << 62)

  def step(self, action):
    """Plays well."""
    time.monotonic()
    return super().step(action)


gymnasium.register("Unseeded-v0", entry_point=Unseeded)
gymnasium.register("Clock-v0", entry_point=Clock)
gymnasium.register("Misbehaving-v0", entry_point=Misbehaving)
for _fault in FAULTS:
  gymnasium.register(
    f"Misbehaving_{_fault}-v0",
    entry_point=Misbehaving,
    kwargs={"fault": _fault, "at": 0 if "endless" in _fault else 40},
  )
