"""Joint particles of first states beside the returns of games."""

import csv

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.core.return_distribution import JointReturnDistribution
from tf_mmdrl.train import (
  joint_calibrating,
  playing,
  presets,
  run_directory,
  trainer,
)


class Pays(gymnasium.Env):
  """Pays (step, action); a game is four steps, or is cut off after three."""

  observation_space = gymnasium.spaces.Box(0, 9, [1], np.float32)
  action_space = gymnasium.spaces.Discrete(2)
  reward_space = gymnasium.spaces.Box(0, 9, (2,))

  def __init__(self, cut=False):
    self._cut = cut

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return np.zeros([1], np.float32), {}

  def step(self, action):
    self._step += 1
    seen = np.array([self._step], np.float32)
    reward = np.array([self._step, action], np.float32)
    cut = self._cut and self._step == 3
    return seen, reward, self._step == 4, cut, {}


gymnasium.register("tests/Pays-v0", Pays, disable_env_checker=True)
gymnasium.register(
  "tests/PaysCut-v0", lambda: Pays(cut=True), disable_env_checker=True
)


def policy():
  """Predicts (a, 7) for action a, and takes the second action."""

  def returns(seen):
    values = tf.constant([[[0.0, 7.0]] * 3, [[1.0, 7.0]] * 3])  # [A, N, D]
    count = tf.shape(seen)[0]
    return JointReturnDistribution(
      tf.tile(values[tf.newaxis], [count, 1, 1, 1])
    )

  return playing.ExportedPolicy(
    5,
    None,
    None,
    tf.TensorSpec([1], tf.float32),
    2,
    returns,
    lambda seen: tf.tile([[0.0, 1.0]], [tf.shape(seen)[0], 1]),
  )


def config(name):
  return presets.get("classic").replace(
    environment=dict(name=name),
    agent=dict(gamma=0.5),
    evaluation=dict(num_envs=2, episodes=4, epsilon=0.0),
  )


def test_each_action_begins_as_many_games():
  shares = []
  found = joint_calibrating.forecasts(
    policy(), config("tests/Pays-v0"), shares.append
  )
  assert len(found) == 2 and shares == sorted(shares) and shares[-1] == 1
  # 1 + 2 / 2 + 3 / 4 + 4 / 8; the second action at all steps but the first.
  for action, one in enumerate(found):
    wanted = [[3.25, action + 0.875]] * 4
    np.testing.assert_allclose(one.returns, wanted)
    np.testing.assert_array_equal(one.particles, [[action, 7]] * 12)
    np.testing.assert_allclose(one.weights, np.full([12], 1 / 12), rtol=1e-6)


@pytest.mark.parametrize(
  "name, message",
  [
    ("tests/PaysCut-v0", "no return is known"),
    ("CartPole-v1", "joint returns are wanted, got returns that are numbers"),
  ],
)
def test_what_cannot_be_compared(name, message):
  with pytest.raises(Exception, match=message):
    joint_calibrating.forecasts(policy(), config(name))


def test_the_command_leaves_with_the_run_what_a_report_shows(tmp_path, capsys):
  run, out, page = tmp_path / "run", tmp_path / "out", tmp_path / "page"
  made = train_fixtures.small(
    "environment.name=tests/Pays-v0",
    "agent.name=joint_mmdqn",
    "agent.utility=threshold:9,2.5",
    "schedule.steps=320",
    "evaluation.period=320",
  )
  trainer.train(made, run_directory.RunDirectory(run))
  capsys.readouterr()
  line = ["calibrate", str(run), "-o", str(out), "--episodes", "3"]
  assert main.main(line) == 0
  said, _ = capsys.readouterr()
  assert "joint_mmdqn, tests/Pays-v0, seed 0, step 320" in said
  assert "\naction 1      3  0, 1  " in said
  with (out / "joint_returns.csv").open() as file:
    rows = list(csv.DictReader(file))
  assert [row["action"] for row in rows] == ["action 0", "action 1"]
  assert all(row["limits"] == "9, 2.5" for row in rows)
  assert all(row["games"] == "3" for row in rows)
  assert len(list(out.glob("joint_returns_*.png"))) == 1
  assert main.main(["report", str(run), "-o", str(page)]) == 0
  html = (page / "report.html").read_text()
  assert "Joint particles beside Monte Carlo returns" in html
  assert "returns of games that began with it (crosses)" in html
