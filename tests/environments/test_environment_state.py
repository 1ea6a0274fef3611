"""Exact resume: what follows a restored state is what would have followed."""

import collections
import enum
import json
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from tf_agents.specs import array_spec

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments import environment, snapshot

_MAKERS = {
  env_id: lambda env_id=env_id: environments.load(
    env_id, seed=0, max_episode_steps=20
  )
  for env_id in (
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalking-v1",
    "FrozenLake-v1",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Taxi-v4",
  )
}
_MAKERS["sync"] = lambda: environments.load(
  "FrozenLake-v1", num_envs=2, seed=0, vectorization_mode="sync"
)
_MAKERS["vector"] = lambda: environments.load("CartPole-v1", num_envs=2, seed=0)


def _play(env, steps, seed):
  rng = np.random.RandomState(seed)
  outer = (env.batch_size,) if env.batched else ()
  stream = []
  for _ in range(steps):
    action = array_spec.sample_spec_nest(env.action_spec(), rng, outer)
    stream.append(snapshot.capture(tuple(env.step(action))))
  return stream


def _check_resume(make, steps):
  env = make()
  _play(env, steps, seed=1)
  state = json.dumps(env.get_state())
  current = snapshot.capture(tuple(env.current_time_step()))
  expected = _play(env, 60, seed=2)
  fresh = make()
  _play(fresh, 7, seed=3)  # another past
  fresh.set_state(json.loads(state))
  assert snapshot.capture(tuple(fresh.current_time_step())) == current
  assert _play(fresh, 60, seed=2) == expected


@pytest.mark.parametrize("steps", [1, 15, 33])
@pytest.mark.parametrize("name", sorted(_MAKERS))
def test_resumes_exactly(name, steps):
  _check_resume(_MAKERS[name], steps)


def test_resumes_spaces_that_draw(space, sampled_env):
  _check_resume(
    lambda: environments.GymnasiumWrapper(sampled_env(space), seed=0), 8
  )


def test_state_before_the_first_episode():
  state = environments.load("FrozenLake-v1", seed=4).get_state()
  env = environments.load("FrozenLake-v1", seed=5)
  env.reset()
  env.set_state(json.loads(json.dumps(state)))
  fresh = environments.load("FrozenLake-v1", seed=4)
  assert _play(env, 50, seed=1) == _play(fresh, 50, seed=1)


class Locked(gymnasium.Env):
  observation_space = action_space = spaces.Discrete(2)

  def reset(self, *, seed=None, options=None):
    self.lock = threading.Lock()
    return 0, {}


def test_parts_that_are_not_plain_are_refused():
  env = environments.GymnasiumWrapper(Locked())
  env.reset()
  with pytest.raises(errors.UserError, match=r"environment\.lock.*rebuild"):
    env.get_state()


def test_box2d_is_refused():
  pytest.importorskip("Box2D")
  env = environments.load("LunarLander-v3")
  env.reset()
  with pytest.raises(errors.UserError, match="SwigPyObject"):
    env.get_state()


def test_processes_are_refused():
  with (
    environments.load(
      "FrozenLake-v1", num_envs=2, vectorization_mode="async"
    ) as env,
    pytest.raises(errors.UserError, match="cannot be saved"),
  ):
    env.get_state()


def test_atari_through_gymnasium_is_refused():
  gymnasium.register_envs(pytest.importorskip("ale_py"))
  env = environments.load("ALE/Pong-v5")
  with pytest.raises(errors.UserError, match="ALEInterface"):
    env.get_state()


def test_state_of_another_environment():
  state = environments.load("CartPole-v1").get_state()
  with pytest.raises(errors.UserError, match="CartPoleEnv"):
    environments.load("Acrobot-v1").set_state(state)


class Side(enum.Enum):
  LEFT = 1
  RIGHT = 2


class Shared:
  """Parts that belong to two attributes, and cycles."""

  def __init__(self, seed):
    self.random = np.random.RandomState(seed)
    self.also = self.random
    self.items = [np.arange(seed), {"a": (1, 2.5)}, None]
    self.first = self.items[0]
    self.me = self
    self.loop = collections.deque([{"self": self}], maxlen=3)
    self.loop.append(self.loop)
    self.side = Side.LEFT
    self.move = self.go

  def go(self):
    pass

  def stop(self):
    pass


def test_what_is_shared_stays_shared():
  old, new = Shared(3), Shared(5)
  old.random.rand(4)
  old.side = Side.RIGHT
  new.also = np.random.RandomState(0)
  snapshot.restore(new, json.loads(json.dumps(snapshot.capture(old))))
  assert new.random is new.also and new.me is new
  assert new.first is new.items[0]
  assert new.loop[0]["self"] is new and new.loop[1] is new.loop
  assert (new.loop.maxlen, new.side) == (3, Side.RIGHT)
  np.testing.assert_array_equal(new.first, old.first)
  assert new.items[1:] == old.items[1:]
  assert new.random.rand() == old.random.rand()


def test_a_changed_method_is_restored():
  old, new = Shared(3), Shared(3)
  old.move = old.stop
  snapshot.restore(new, json.loads(json.dumps(snapshot.capture(old))))
  assert new.move == new.stop


@pytest.mark.parametrize(
  "part",
  [
    {"kind": "constant", "module": "os", "name": "system"},
    {"kind": "object", "index": 9, "class": "tempfile.Named", "parts": {}},
    {"kind": "object", "index": 9, "class": "hypothesis.Phase", "parts": {}},
    {"kind": "enum", "class": "hypothesis.Phase", "name": "reuse"},
    {"kind": "method", "name": "no_such", "self": {"kind": "same", "index": 0}},
  ],
)
def test_a_state_cannot_name_what_is_no_part_of_the_environment(part):
  state = snapshot.capture(Shared(3))
  state["parts"]["more"] = part
  with pytest.raises(errors.UserError, match=r"environment\.more"):
    snapshot.restore(Shared(3), state)


def test_a_generator_that_has_ended_has_ended_after_a_restore():
  old, new = Shared(3), Shared(3)
  for each in (old, new):
    each.numbers = (number for number in range(3))
  assert list(old.numbers) == [0, 1, 2]
  snapshot.restore(new, json.loads(json.dumps(snapshot.capture(old))))
  assert list(new.numbers) == []


def test_views_are_refused():
  value = [np.arange(4)]
  value.append(value[0][1:])
  with pytest.raises(snapshot.CannotCaptureError, match="view"):
    snapshot.capture(value)


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
@pytest.mark.parametrize("num_envs", [None, 2])
def test_rebuild_forgets_the_past(name, num_envs):
  def make():
    return environments.load(name, num_envs=num_envs, seed=1)

  played, fresh = make(), make()
  _play(played, 30, seed=1)
  played.rebuild(2)
  fresh.rebuild(2)
  expected = _play(fresh, 30, seed=2)
  assert _play(played, 30, seed=2) == expected
  fresh.rebuild(3)
  assert _play(fresh, 30, seed=2) != expected


def test_derived_seeds():
  seeds = environment.derive_seeds(1, 2, 100)
  assert len(set(seeds)) == 100
  assert seeds.min() >= 0 and seeds.max() < 2**31
  for other in (
    environment.derive_seeds(2, 2, 100),
    environment.derive_seeds(1, 3, 100),
  ):
    assert not set(seeds) & set(other)


def test_all_of_a_state_comes_from_the_seed():
  states = []
  for _ in range(2):
    env = environments.load("CartPole-v1", num_envs=2, seed=0)
    env.reset()
    states.append(env.get_state())
  assert states[0] == states[1]


def test_parts_within_parts_without_end_are_refused():
  env = gymnasium.make("CartPole-v1")
  chain = []
  for _ in range(5000):
    chain = [chain]
  env.unwrapped.chain = chain
  with pytest.raises(snapshot.CannotCaptureError, match="parts within parts"):
    snapshot.capture(env)
