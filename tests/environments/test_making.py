"""`make_environment`: from a name to the right environment."""

import importlib.util

import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.environments import atari, family, make_environment


@pytest.mark.parametrize(
  "name, shape",
  [
    ("CartPole-v1", (4,)),
    ("gymnasium:CartPole-v1", (4,)),
    ("chain", ()),
    ("tf_mmdrl/Chain-v0", ()),
  ],
)
@pytest.mark.parametrize("num_envs", [None, 2])
def test_gymnasium_names(name, shape, num_envs):
  env = make_environment(name, num_envs=num_envs, seed=0)
  assert env.observation_spec().shape == shape
  assert env.batch_size == num_envs
  assert env.reset().is_first().all()


@pytest.mark.parametrize(
  "name", ["Breakout", "ALE/Breakout-v5", "atari/breakout", "Breakout-v4"]
)
def test_atari_names(name):
  with make_environment(name, num_envs=1) as env:
    assert env.action_meanings() == ["NOOP", "FIRE", "RIGHT", "LEFT"]
    assert env.protocol == atari.PAPER_TRAINING


def test_gymnasium_before_atari():
  """Blackjack is an Atari game as well."""
  assert len(make_environment("Blackjack-v1").observation_spec()) == 3


@pytest.mark.skipif(
  importlib.util.find_spec("minatar") is None, reason="extra minatar"
)
@pytest.mark.parametrize("name", ["MinAtar/Breakout", "minatar/breakout"])
def test_minatar_names(name):
  env = make_environment(name, minimal_actions=True)
  assert env.observation_spec().shape == (10, 10, 4)
  assert env.action_spec().num_values == 3


def test_chain_length():
  assert make_environment("chain/15").observation_spec().maximum == 14
  assert make_environment("chain", length=7).observation_spec().maximum == 6


@pytest.mark.parametrize(
  "protocol, evaluation, expected",
  [
    ("paper", False, atari.PAPER_TRAINING),
    ("paper", True, atari.PAPER_EVALUATION),
    ("authors", False, atari.AUTHORS_TRAINING),
    ("authors", True, atari.AUTHORS_EVALUATION),
    ("sticky", False, atari.STICKY_TRAINING),
    ("sticky", True, atari.STICKY_EVALUATION),
  ],
)
def test_protocols(protocol, evaluation, expected):
  with make_environment(
    "Pong", num_envs=1, protocol=protocol, evaluation=evaluation
  ) as env:
    assert env.protocol == expected


def test_atari_default_is_eight_games():
  with make_environment("Pong") as env:
    assert env.batch_size == 8


@pytest.mark.parametrize(
  "name, options, message",
  [
    ("CartPol-v1", {}, "unknown environment.*'CartPole-v1'"),
    ("Brekout", {}, "unknown environment.*'Breakout'"),
    ("ALE/Brekout-v5", {}, "unknown Atari game.*'Breakout'"),
    ("MinAtar/Asterisk", {}, "unknown MinAtar game.*'Asterix'"),
    ("chain/long", {}, "whole number, got 'long'"),
    ("chain/1", {}, "at least 2 states"),
    ("Pong", {"protocol": "stick"}, "unknown Atari protocol.*'sticky'"),
    ("Pong", {"frameskip": 4}, "unknown Atari option.*'frame_skip'"),
    ("no_such_module:Env-v0", {}, "no_such_module"),
    ("CartPole-v1", {"lenght": 3}, "lenght"),
  ],
)
def test_mistakes(name, options, message):
  with pytest.raises(errors.UserError, match=message):
    make_environment(name, **options)


@pytest.mark.parametrize(
  "name, kind",
  [
    ("Breakout", "atari"),
    ("ALE/Pong-v5", "atari"),
    ("MinAtar/Breakout", "minatar"),
    ("chain/15", "chain"),
    ("CartPole-v1", "gymnasium"),
  ],
)
def test_a_name_tells_its_family(name, kind):
  assert family(name) == kind


@pytest.mark.parametrize("name", ["Pong", "MinAtar/Freeway", "CartPole-v1"])
def test_episodes_can_be_cut_off_by_steps(name):
  with make_environment(
    name, num_envs=1, seed=0, max_episode_steps=7, **_quiet(name)
  ) as env:
    env.reset()
    lasts = [env.step([0]).is_last()[0] for _ in range(7)]
  assert lasts == [False] * 6 + [True]


def _quiet(name):
  """No no-ops, so that an Atari game's steps are the agent's."""
  return {"noop_max": 0} if name == "Pong" else {}
