"""The authors' protocol: every rule against a plain loop over the emulator."""

import json

import ale_py
import numpy as np
import pytest
from ale_py import roms
from tf_agents.environments import utils

from tf_mmdrl.core import errors
from tf_mmdrl.environments import (
  atari,
  environment,
  exact_atari,
  make_environment,
)

_FIRST, _MID, _LAST = 0, 1, 2


class _Loop:
  """One emulator, played by the rules as they are written down.

  Attributes:
    stopped_at: after which frame of a step each lost life stopped it.
    restarts: games started again because of a life lost within the no-ops.
  """

  def __init__(self, rom, seed, *, noop_max=30, max_steps=27_000):
    self._resize = pytest.importorskip("cv2").resize
    self._ale = ale_py.ALEInterface()
    self._ale.setFloat("repeat_action_probability", 0.0)
    self._ale.loadROM(roms.get_rom_path(rom))
    self._draws = np.random.default_rng(environment.derive_seeds(seed, 0, 1)[0])
    self._noop_max, self._max_steps = noop_max, max_steps
    self.stopped_at, self.restarts = [], 0

  def start(self):
    """Starts a game; the first stack."""
    self._reset()
    for _ in range(self._draws.integers(1, self._noop_max + 1)):
      if self._frames(0)[1]:
        self.restarts += 1
        self._reset()
    self._steps = 0
    return self._clear()

  def step(self, action):
    """The stack, the reward, whether learning ends here, and the step type."""
    reward, life_lost = self._frames(action)
    self._steps += 1
    over = self._ale.game_over() or self._steps == self._max_steps
    if life_lost:
      stack = self._clear()
    else:
      self._stack = stack = [*self._stack[1:], self._picture()]
    return stack, reward, life_lost or over, _LAST if over else _MID

  def _frames(self, action):
    total = 0
    for number in (1, 2, 3, 4):
      lives = self._ale.lives()
      total += self._ale.act(self._ale.getMinimalActionSet()[action])
      if self._ale.game_over() or self._ale.lives() < lives:
        self.stopped_at.append(number)
        return total, True
      if number == 3:
        self._third = self._ale.getScreenGrayscale()
      if number == 4:
        self._fourth = self._ale.getScreenGrayscale()
    return total, False

  def _reset(self):
    self._ale.reset_game()
    self._third = self._ale.getScreenGrayscale()
    self._fourth = np.zeros_like(self._third)

  def _clear(self):
    blank = np.zeros([84, 84], np.uint8)
    self._stack = [blank, blank, blank, self._picture()]
    return self._stack

  def _picture(self):
    import cv2

    both = np.maximum(self._third, self._fourth)
    return self._resize(both, (84, 84), interpolation=cv2.INTER_AREA)


def _serve(index):
  """Breakout: FIRE, then NOOP, so that the ball falls."""
  return 1 if index % 20 == 0 else 0


def _compare(env, loop, steps, choose):
  """Plays both; [steps] step types and discounts."""
  np.testing.assert_array_equal(env.reset().observation[0], _last(loop.start()))
  types, discounts = [], []
  for index in range(steps):
    step = env.step(np.array([choose(index)]))
    if types and types[-1] == _LAST:  # the action does not count
      expected = loop.start(), 0, False, _FIRST
    else:
      expected = loop.step(choose(index))
    stack, reward, ends, step_type = expected
    types.append(int(step.step_type[0]))
    discounts.append(float(step.discount[0]))
    assert (types[-1], discounts[-1]) == (step_type, 1 - ends), index
    assert (env.raw_reward[0], step.reward[0]) == (reward, np.sign(reward))
    if step_type != _LAST:  # nobody learns from, or acts in, a last picture
      np.testing.assert_array_equal(
        step.observation[0], _last(stack), err_msg=str(index)
      )
  return types, discounts


def _last(stack):
  return np.stack(stack, axis=-1)


def test_equals_a_plain_loop():
  """All of a game with its five lives, and the start of the next."""
  loop = _Loop("breakout", seed=0)
  with make_environment(
    "Breakout", num_envs=1, seed=0, protocol="authors"
  ) as env:
    types, discounts = _compare(env, loop, 250, _serve)
  over = types.index(_LAST)
  assert types[over + 1] == _FIRST
  assert discounts[: over + 1].count(0) == 5
  assert min(loop.stopped_at) < 4  # frame skips that were stopped


def test_a_cut_off_game_is_terminal():
  """After agent steps, though lost lives made some of them shorter."""
  loop = _Loop("breakout", seed=1, max_steps=150)
  with atari.load(
    "Breakout",
    num_envs=1,
    seed=1,
    protocol=atari.AUTHORS_TRAINING,
    max_frames=600,
  ) as env:
    types, discounts = _compare(env, loop, 152, _serve)
  assert types[148:] == [_MID, _LAST, _FIRST, _MID]
  assert discounts[149] == 0
  assert discounts[:149].count(0) == len(loop.stopped_at) > 0


def test_a_life_lost_within_the_noops_starts_again():
  """James Bond loses the first after 104 agent steps of no-op."""
  loop = _Loop("jamesbond", seed=8, noop_max=160)
  with atari.load(
    "Jamesbond",
    num_envs=1,
    seed=8,
    protocol=atari.AUTHORS_TRAINING,
    noop_max=160,
  ) as env:
    # Here things move when a life is lost: the picture must be an old one.
    _, discounts = _compare(env, loop, 100, lambda index: 0)
  assert loop.restarts == 1
  assert discounts.count(0) == 1


def test_noops_are_agent_steps_from_one():
  with atari.load(
    "Pong", num_envs=1, seed=0, protocol=atari.AUTHORS_TRAINING, noop_max=3
  ) as env:
    seen = set()
    for _ in range(20):
      assert env.reset().is_first().all()
      seen |= set(env.get_info()["episode_frame_number"].tolist())
  assert seen == {4, 8, 12}


def test_pictures_are_those_of_the_vector_environment():
  """Where no rule differs: no no-ops, no lives."""
  exact, fast = (
    atari.load("Pong", num_envs=1, seed=0, protocol=protocol, noop_max=0)
    for protocol in (atari.AUTHORS_EVALUATION, atari.PAPER_EVALUATION)
  )
  assert exact.time_step_spec() == fast.time_step_spec()
  assert exact.action_spec() == fast.action_spec()
  assert exact.action_meanings() == fast.action_meanings()
  rng = np.random.RandomState(0)
  steps = [exact.reset(), fast.reset()]
  for _ in range(80):
    for left, right in zip(*steps):
      np.testing.assert_array_equal(left, right)
    action = rng.randint(6, size=1)
    steps = [exact.step(action), fast.step(action)]
  assert set(fast.get_info()) - set(exact.get_info()) <= {"env_id"}


def test_lives_do_not_stop_a_step_where_they_do_not_count():
  with atari.load(
    "Breakout",
    num_envs=1,
    seed=0,
    protocol=atari.AUTHORS_TRAINING,
    life_loss=False,
  ) as env:
    env.reset()
    before = env.get_info()["episode_frame_number"]
    for index in range(60):
      step = env.step(np.array([_serve(index)]))
      if env.get_info()["life_lost"]:
        break
    assert step.discount == [1.0]
    assert env.get_info()["episode_frame_number"] == before + 4 * (index + 1)
    assert step.observation[..., :-1].any()


def _play(env, steps, seed):
  rng = np.random.RandomState(seed)
  high = env.action_spec().maximum + 1
  stream = []
  for _ in range(steps):
    step = env.step(rng.randint(high, size=env.batch_size))
    stream += [*step, env.raw_reward, env.get_info()["score"]]
  return stream


def _same(left, right):
  return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def _load(game="Breakout", **options):
  return atari.load(
    game,
    **{"num_envs": 2, "seed": 3, "max_frames": 120, **options},
    protocol=atari.AUTHORS_TRAINING,
  )


def test_resumes_exactly():
  """From the first step, within games, and from their end."""
  options = {"sticky_actions": 0.25}  # so that the emulator draws as well
  with _load(**options) as env, _load(seed=4, **options) as fresh:
    env.reset()
    _play(fresh, 3, seed=3)  # another past
    for steps, at_the_end in ((0, False), (20, False), (10, True)):
      _play(env, steps, seed=1)
      state = json.dumps(env.get_state())
      assert env.current_time_step().is_last().all() == at_the_end
      fresh.set_state(json.loads(state))
      assert _same(fresh.current_time_step(), env.current_time_step())
      expected = _play(env, 40, seed=2)
      assert _same(_play(fresh, 40, seed=2), expected)
      env.set_state(json.loads(state))
    with pytest.raises(ValueError, match="read-only"):
      env.current_time_step().observation[:] = 0


def test_state_before_the_first_game():
  with _load(num_envs=1) as env, _load(num_envs=1, seed=4) as fresh:
    fresh.reset()
    fresh.set_state(json.loads(json.dumps(env.get_state())))
    assert _same(_play(fresh, 5, seed=1), _play(env, 5, seed=1))


def test_rebuild_forgets_the_past():
  with _load(num_envs=1) as played, _load(num_envs=1) as fresh:
    _play(played, 40, seed=1)
    first = [env.rebuild(2) for env in (played, fresh)]
    assert _same(*first)
    assert _same(_play(played, 20, seed=2), _play(fresh, 20, seed=2))


def test_state_of_other_games():
  with _load("Pong", num_envs=1) as pong, _load(num_envs=1) as breakout:
    pong.reset()
    with pytest.raises(errors.UserError, match="1 x 'pong'.*1 x 'breakout'"):
      breakout.set_state(pong.get_state())


def test_validates():
  with _load(max_frames=80, num_envs=1) as env:
    utils.validate_py_environment(env, episodes=2)
    assert env.current_time_step().observation.flags.c_contiguous


@pytest.mark.parametrize(
  "options, message",
  [
    ({"frame_skip": 2}, "frame_skip of 4 or more, got.*frame_skip=2"),
    ({"max_pool": False}, "needs max_pool"),
    ({"screen_size": 161}, "at most 160"),
  ],
)
def test_bad_options(options, message):
  with pytest.raises(errors.UserError, match=message):
    _load(**options)


@pytest.mark.parametrize("shape", [(210, 160), (250, 160)])
@pytest.mark.parametrize("size", [42, 84, 160])
def test_shrinks_as_opencv(shape, size):
  cv2 = pytest.importorskip("cv2")
  shrink = exact_atari.AreaShrinker(shape, size)
  rng = np.random.default_rng(size)
  for colours in (2, 3, 256):  # few make ties, which must round alike
    grey = np.linspace(0, 255, colours).astype(np.uint8)
    for _ in range(5):
      screen = grey[rng.integers(colours, size=shape)]
      np.testing.assert_array_equal(
        shrink(screen),
        cv2.resize(screen, (size, size), interpolation=cv2.INTER_AREA),
      )
