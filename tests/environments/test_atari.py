"""Atari games: the same pictures as Gymnasium's, lives, scores, seeds."""

import time

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium import wrappers
from tf_agents.environments import utils

from tf_mmdrl.core import errors
from tf_mmdrl.environments import atari, names

gymnasium.register_envs(ale_py)

_FIRST, _MID, _LAST = 0, 1, 2
_PARITY_GAMES = ["Breakout", "Pong", "Qbert", "SpaceInvaders", "Freeway"]
_SAMPLE = ["Breakout", "MontezumaRevenge", "Pong", "Tetris"]


def _actions(env, steps, seed=0):
  high = env.action_spec().maximum + 1
  rng = np.random.RandomState(seed)
  return rng.randint(high, size=(steps, env.batch_size))


def _play(env, actions):
  """The time steps of a rebuilt or fresh environment, as stacked arrays."""
  steps = [env.current_time_step(), *(env.step(a) for a in actions)]
  return [np.stack(field) for field in zip(*steps)]


def _fresh(game="Breakout", steps=150, **options):
  options = {"num_envs": 2, "seed": 3, **options}
  with atari.load(game, **options) as env:
    env.reset()
    return _play(env, _actions(env, steps))


def _same(left, right):
  return all(np.array_equal(a, b) for a, b in zip(left, right))


@pytest.mark.parametrize("game", _PARITY_GAMES)
def test_equals_gymnasium(game):
  pytest.importorskip("cv2", reason="AtariPreprocessing needs OpenCV")
  reference = gymnasium.make(
    f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0
  )
  reference = wrappers.AtariPreprocessing(reference, noop_max=0)
  reference = wrappers.FrameStackObservation(reference, 4, padding_type="zero")
  env = atari.load(
    game, num_envs=1, seed=0, protocol=atari.PAPER_EVALUATION, noop_max=0
  )
  picture, _ = reference.reset(seed=0)
  step = env.reset()
  for index, action in enumerate(_actions(env, 1000)):
    np.testing.assert_array_equal(
      step.observation[0], np.moveaxis(picture, 0, -1), err_msg=str(index)
    )
    if step.is_last():
      picture, _ = reference.reset()
      step = env.step(action)  # the action does not count
      assert step.is_first()
      continue
    picture, reward, terminated, truncated, _ = reference.step(action[0])
    step = env.step(action)
    assert step.reward == np.float32(reward)
    assert step.is_last() == (terminated or truncated)
    assert step.discount == float(not terminated)


@pytest.mark.parametrize(
  "protocol", [atari.PAPER_TRAINING, atari.STICKY_TRAINING]
)
def test_streams_depend_on_seed_and_actions_only(protocol):
  one = _fresh(num_threads=1, protocol=protocol)
  assert _same(one, _fresh(num_threads=2, protocol=protocol))
  assert not _same(one, _fresh(seed=4, protocol=protocol))
  observations = one[-1]
  assert not np.array_equal(observations[:, 0], observations[:, 1])


@pytest.mark.parametrize("game", ["Breakout", "Qbert", "Tetris"])
def test_rebuild_forgets_the_past(game):
  options = {"num_envs": 2, "seed": 7, "protocol": atari.STICKY_TRAINING}
  with (
    atari.load(game, **options) as played,
    atari.load(game, **options) as fresh,
  ):
    played.reset()
    _play(played, _actions(played, 200, seed=1))
    played.rebuild(2)
    fresh.rebuild(2)
    actions = _actions(fresh, 150)
    assert _same(_play(played, actions), _play(fresh, actions))


def test_boundaries_differ():
  with atari.load("Breakout", num_envs=1, seed=7) as env:
    streams = []
    for boundary in (1, 2, 1):
      env.rebuild(boundary)
      streams.append(_play(env, _actions(env, 100)))
  assert _same(streams[0], streams[2])
  assert not _same(streams[0], streams[1])


def test_rebuild_without_seed():
  env = atari.load("Pong", num_envs=1)
  with env, pytest.raises(errors.UserError, match="pass seed="):
    env.rebuild(1)


def test_state_cannot_be_saved():
  with atari.load("Pong", num_envs=1) as env:
    with pytest.raises(errors.UserError, match="rebuild"):
      env.get_state()
    with pytest.raises(errors.UserError, match="rebuild"):
      env.set_state({})


def test_life_loss_is_an_end_for_learning_only():
  """FIRE, then NOOP: the ball falls, the game goes on with the next life."""
  with atari.load("Breakout", num_envs=1, seed=0) as env:
    env.reset()
    lost_at, lives = [], [5]
    for index in range(400):
      step = env.step(np.array([1 if index % 20 == 0 else 0]))
      info = env.get_info()
      lives.append(int(info["lives"][0]))
      assert info["life_lost"][0] == (lives[-1] < lives[-2])
      if step.is_last():
        break
      assert step.step_type == [_MID]
      assert step.discount == [0.0 if lives[-1] < lives[-2] else 1.0]
      if lives[-1] < lives[-2]:
        lost_at.append(index)
    assert len(lost_at) == 4  # the fifth life ends the game
    assert step.discount == [0.0]
    assert lives[-1] == 0
    after = env.step(np.array([1]))
    assert after.step_type == [_FIRST]
    assert after.discount == [1.0]
    assert env.get_info()["lives"] == [5]


def test_life_loss_off():
  with atari.load("Breakout", num_envs=1, seed=0, life_loss=False) as env:
    env.reset()
    for index in range(400):
      step = env.step(np.array([1 if index % 20 == 0 else 0]))
      if step.is_last():
        break
      assert step.discount == [1.0]
    assert step.discount == [0.0]


def test_scores_span_whole_games():
  """Qbert's rewards are 25 and more, its games short."""
  with atari.load("Qbert", num_envs=2, seed=0) as env:
    env.reset()
    totals, finished, lives_lost = np.zeros(2), 0, 0
    for action in _actions(env, 1500):
      step, info = env.step(action), env.get_info()
      totals = np.where(step.is_first(), 0, totals) + env.raw_reward
      np.testing.assert_array_equal(info["score"], totals)
      np.testing.assert_array_equal(info["game_over"], step.is_last())
      np.testing.assert_array_equal(step.reward, env.raw_reward.clip(-1, 1))
      assert not (step.reward[step.is_first()]).any()
      lives_lost += info["life_lost"].sum()
      finished += step.is_last().sum()
    assert finished >= 2
    assert lives_lost > 2 * finished
    assert totals.max() >= 25


def test_observations_are_not_changed_by_later_steps():
  with atari.load("Breakout", num_envs=2, seed=0) as env:
    observations = [env.step(a).observation for a in _actions(env, 20)]
    copies = [o.copy() for o in observations]
    for action in _actions(env, 20):
      env.step(action)
  assert _same(observations, copies)
  with pytest.raises(ValueError, match="read-only"):
    observations[0][:] = 0


def test_frame_cap_is_a_truncation():
  with atari.load("Pong", num_envs=1, max_frames=40) as env:
    env.reset()
    steps = [env.step(np.array([0])) for _ in range(11)]
  assert [int(s.step_type[0]) for s in steps] == [_MID] * 9 + [_LAST, _FIRST]
  assert steps[9].discount == [1.0]


def test_noops_reach_the_maximum():
  with atari.load("Pong", num_envs=2, seed=0, noop_max=3) as env:
    seen = set()
    for _ in range(20):
      env.reset()
      seen |= set(env.get_info()["episode_frame_number"].tolist())
  assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize(
  "action, message",
  [
    ([0, 4], "within"),
    ([-1, 0], "within"),
    ([0.0, 1.0], "must be int64, got float64"),
    ([0], "shape"),
    (0, "shape"),
    ([[0], [1]], "shape"),
  ],
)
def test_bad_actions_raise_at_once(action, message):
  with atari.load("Breakout", num_envs=2, seed=0) as env:
    env.reset()
    start = time.perf_counter()
    with pytest.raises(errors.UserError, match=message):
      env.step(np.array(action))
    assert time.perf_counter() - start < 1
    env.step(np.array([0, 3]))  # and the games still run


@pytest.mark.parametrize(
  "name", ["Breakout", "breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4"]
)
def test_forgiving_names(name):
  assert atari.rom_id(name) == "breakout"


def test_every_gymnasium_name_is_known():
  ids = [i for i in gymnasium.registry if i.startswith("ALE/")]
  assert len(ids) == len(names.atari_games()) > 100
  for env_id in ids:
    rom = gymnasium.spec(env_id).kwargs["game"]
    assert atari.rom_id(env_id) == atari.rom_id(rom) == rom


@pytest.mark.parametrize(
  "name, near", [("Brekout", "Breakout"), ("pongg", "Pong")]
)
def test_unknown_game_names_the_nearest(name, near):
  with pytest.raises(errors.UserError, match=f"unknown Atari game.*{near}"):
    atari.load(name)


@pytest.mark.parametrize(
  "options, message",
  [
    ({"noop": 3}, "did you mean 'noop_max'"),
    ({"noop_max": -1}, "noop_max must be at least 0"),
    ({"frame_skip": 0}, "frame_skip must be at least 1"),
    ({"sticky_actions": 1.5}, "sticky_actions must lie within"),
    ({"num_envs": 0}, "num_envs must be at least 1"),
  ],
)
def test_bad_options(options, message):
  with pytest.raises(errors.UserError, match=message):
    atari.load("Pong", **options)


def test_full_action_space():
  with atari.load("Pong", num_envs=1, full_action_space=True) as env:
    assert env.action_spec().num_values == 18
    assert len(env.action_meanings()) == 18


def test_protocols():
  for protocol in (atari.STICKY_TRAINING, atari.STICKY_EVALUATION):
    assert protocol.sticky_actions == 0.25
    assert not protocol.life_loss
  for protocol in (atari.PAPER_TRAINING, atari.PAPER_EVALUATION):
    assert (protocol.noop_max, protocol.sticky_actions) == (30, 0.0)
  for protocol in (atari.PAPER_EVALUATION, atari.STICKY_EVALUATION):
    assert not protocol.clip_rewards and not protocol.life_loss
  for protocol in (atari.AUTHORS_TRAINING, atari.AUTHORS_EVALUATION):
    assert (protocol.noop_max, protocol.max_frames) == (30, 4 * 27_000)
    assert protocol.life_loss and protocol.exact
  assert atari.AUTHORS_TRAINING.clip_rewards
  assert not atari.AUTHORS_EVALUATION.clip_rewards
  assert atari.PAPER_TRAINING.life_loss
  assert atari.PAPER_TRAINING.clip_rewards


def _validate(game):
  with atari.load(game, num_envs=2, seed=0, max_frames=200) as env:
    spec = env.observation_spec()
    assert (spec.shape, spec.dtype) == ((84, 84, 4), np.uint8)
    utils.validate_py_environment(env, episodes=2)
    assert env.current_time_step().observation.flags.c_contiguous


@pytest.mark.parametrize("game", _SAMPLE)
def test_validates(game):
  _validate(game)


@pytest.mark.slow
@pytest.mark.parametrize("game", names.atari_games())
def test_every_game_validates(game):
  _validate(game)
