"""Forecasts beside the returns of games that are played."""

import csv
import re

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.train import calibrating, playing, presets, run_directory, trainer


class Countdown(gymnasium.Env):
  """Pays 1, 2, 3, ...; a game is four steps, or is cut off after three."""

  observation_space = gymnasium.spaces.Box(0, 9, [1], np.float32)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, cut=False):
    self._cut = cut

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return np.zeros([1], np.float32), {}

  def step(self, action):
    self._step += 1
    seen = np.array([self._step], np.float32)
    ends, cut = self._step == 4, self._cut and self._step == 3
    return seen, float(self._step), ends and not cut, cut, {}


gymnasium.register("Countdown-v0", Countdown)
gymnasium.register("CountdownCut-v0", lambda: Countdown(cut=True))


def policy():
  """Says at step t that the return is t, and takes the second action."""

  def returns(seen):
    particles = tf.stack([seen * 0 - 1, seen], axis=1)  # [B, A, 1]
    return ReturnDistribution(tf.concat([particles, particles], axis=-1))

  return playing.ExportedPolicy(
    5,
    None,
    None,
    tf.TensorSpec([1], tf.float32),
    2,
    returns,
    lambda seen: tf.tile([[0.0, 1.0]], [tf.shape(seen)[0], 1]),
  )


def config(name, **agent):
  return presets.get("classic").replace(
    environment=dict(name=name),
    agent=dict(gamma=0.5, **agent),
    evaluation=dict(num_envs=2, episodes=4, epsilon=0.0),
  )


def test_returns_are_discounted_sums_of_what_came():
  found = calibrating.forecasts(policy(), config("Countdown-v0"))
  # 4; 3 + 4 / 2; 2 + 5 / 2; 1 + 4.5 / 2.
  wanted = [3.25, 4.5, 5.0, 4.0]
  for game in range(4):
    rows = found.games == game
    np.testing.assert_allclose(found.returns[rows], wanted)
    np.testing.assert_allclose(found.particles[rows, 0], [0, 1, 2, 3])
  assert len(found.returns) == 16 and found.particles.shape == (16, 2)


def test_every_other_step_is_looked_at():
  found = calibrating.forecasts(policy(), config("Countdown-v0"), every=3)
  assert 4 <= len(found.returns) < 16
  # What was not looked at is in the returns all the same.
  by_step = {0: 3.25, 1: 4.5, 2: 5.0, 3: 4.0}
  for step, value in zip(found.particles[:, 0], found.returns):
    assert value == by_step[int(step)]


def test_a_scale_of_rewards_is_that_of_the_forecasts():
  scaled = calibrating.forecasts(
    policy(), config("Countdown-v0", reward_scale=2.0)
  )
  plain = calibrating.forecasts(policy(), config("Countdown-v0"))
  np.testing.assert_allclose(scaled.returns, 2 * plain.returns)


def test_what_was_cut_off_is_not_known():
  with pytest.raises(Exception, match="no return is known"):
    calibrating.forecasts(policy(), config("CountdownCut-v0"))


def test_munchausen_is_refused():
  with pytest.raises(Exception, match="agent.munchausen=true"):
    calibrating.forecasts(policy(), config("Countdown-v0", munchausen=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  path = tmp_path_factory.mktemp("calibrated") / "run"
  made = train_fixtures.small(
    "environment.name=CartPole-v1", "schedule.steps=320"
  )
  trainer.train(made, run_directory.RunDirectory(path))
  return path


def test_the_command_prints_and_writes(run, tmp_path, capsys):
  target = tmp_path / "out"
  line = ["calibrate", str(run), "-o", str(target), "--episodes", "3"]
  assert main.main(line) == 0
  out, _ = capsys.readouterr()
  assert max(map(len, out.splitlines()[:3])) <= 80
  assert re.search(r"CartPole-v1 mmdqn 0 +\d+ % +\d+ % +\d", out)
  with (target / "calibration.csv").open() as file:
    (row,) = csv.DictReader(file)
  shares = [float(row[f"pit_{index}"]) for index in range(10)]
  assert sum(shares) == pytest.approx(1) and row["games"] == "3"
  assert float(row["crps_low"]) <= float(row["crps"])
  assert (target / "calibration.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
  "line, said",
  [
    (["nowhere"], "is not a directory"),
    ([".", "--episodes", "0"], "--episodes must be a whole number from 1"),
    ([".", "--every", "0"], "--every must be at least 1"),
  ],
)
def test_bad_input_is_one_line(line, said, capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert main.main(["calibrate", *line]) == 2
  err = capsys.readouterr().err
  assert said in err and err.count("\n") == 1


def test_rewards_are_clipped_as_in_training():
  """An invader is worth 5 to 30 points, and 1 to the agent."""

  def returns(seen):
    return ReturnDistribution(tf.zeros([tf.shape(seen)[0], 6, 2]))

  shooter = playing.ExportedPolicy(
    5, None, None, tf.TensorSpec([84, 84, 4], tf.uint8), 6, returns,
    lambda seen: tf.tile(tf.eye(6)[1:2], [tf.shape(seen)[0], 1]),
  )  # fmt: skip
  game = config("SpaceInvaders").replace(
    environment=dict(max_episode_steps=150),
    evaluation=dict(num_envs=1, episodes=1),
  )
  found = calibrating.forecasts(shooter, game)
  # At gamma 1/2 one point a step, for ever, would be 2.
  assert 0.9 < found.returns.max() <= 2
