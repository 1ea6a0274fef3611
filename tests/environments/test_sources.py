"""What the code of an environment asks that no seed decides."""

import os
import random
import time

import gymnasium
import numpy as np
import odd_environments
import pytest

from tf_mmdrl.environments.snapshot import sources

_SYSTEM = random.SystemRandom()


def _drawn():
  return np.random.default_rng().random()


class _Asking(gymnasium.Env):
  """Its generator is in its state; its methods ask for more."""

  def __init__(self):
    self.generator = np.random.default_rng()


class _Clock(_Asking):
  def step(self, action):
    return time.time() + action


class _System(_Asking):
  def step(self, action):
    return _SYSTEM.random() + action


class _Helper(_Asking):
  def step(self, action):
    return _drawn() + action


class _Imported(_Asking):
  def reset(self, *, seed=None, options=None):
    from random import Random

    return Random().random()


class _Writing(_Asking):
  def step(self, action):
    with open("kept", "a") as file:
      return file.write(str(action))


class _Hashing(_Asking):
  def step(self, action):
    return hash("level") + action


class _Quiet(_Asking):
  def step(self, action):
    with open("level") as file:
      return np.random.default_rng(3).random() + len(file.read()) + action

  def render(self):
    return time.time()

  def _render_frame(self):
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

  def __hash__(self):
    return hash(self.generator)


@pytest.mark.parametrize(
  "kind, name",
  [
    (_Clock, "time.time"),
    (_System, "random.SystemRandom"),
    (_Helper, "numpy.random.default_rng()"),
    (_Imported, "random.Random()"),
    (_Writing, 'open(..., "a")'),
    (_Hashing, "hash"),
  ],
)
def test_what_no_seed_decides_is_found_with_its_place(kind, name):
  (found,) = sources.found(kind())
  assert found.name == name
  file, _, line = found.place.partition(":")
  assert file == "test_sources.py" and int(line) > 1


def test_seeds_and_files_that_are_read_are_no_sources():
  assert not sources.found(_Quiet())
  assert not sources.found(gymnasium.make("CartPole-v1"))
  assert not sources.found(odd_environments.make(["generators"]))
