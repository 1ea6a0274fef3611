"""Whole runs whose rewards are of odd sizes: huge, tiny, none, rare.

Each step shows a number, and the right action is its sign; an episode has 16.
"""

import gymnasium
import numpy as np
import pytest
import train_fixtures

from tf_mmdrl.train import run_directory, trainer

_LENGTH = 16


class Signs(gymnasium.Env):
  """Pays for the right action, in the way that a kind names."""

  observation_space = gymnasium.spaces.Box(-1.0, 1.0, [2], np.float32)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, factor=1.0, outlier_at=-1, period=1):
    """An environment that has not begun.

    Args:
      factor: what a right action pays.
      outlier_at: the step, over all episodes, that pays 1e9 instead.
      period: only every so many steps, over all episodes, pays at all.
    """
    self.factor, self.outlier_at, self.period = factor, outlier_at, period
    self.steps = 0

  def reset(self, *, seed=None, options=None):
    """Begins an episode."""
    super().reset(seed=seed)
    return self._look(), {}

  def step(self, action):
    """Pays for the sign of what was seen, and shows the next."""
    self.steps += 1
    right = int(action) == int(self.shown[0] > 0)
    reward = self.factor * right if self.steps % self.period == 0 else 0.0
    if self.steps == self.outlier_at:
      reward = 1e9
    return self._look(), reward, self.steps % _LENGTH == 0, False, {}

  def _look(self):
    self.shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
    return self.shown


_KINDS = {
  "Million": {"factor": 1e6},
  "Millionth": {"factor": 1e-6},
  "Zero": {"factor": 0.0},
  "Outlier": {"outlier_at": 300},
  "Sparse": {"period": 500},
}
for _kind, _arguments in _KINDS.items():
  gymnasium.register(f"Signs{_kind}-v0", entry_point=Signs, kwargs=_arguments)


def _run(path, kind, agent="mmdqn", *changes):
  config = train_fixtures.small(
    f"environment.name=Signs{kind}-v0",
    "environment.max_episode_steps=0",
    f"agent.name={agent}",
    f"network.num_particles={1 if agent == 'dqn' else 16}",
    "agent.gamma=0.9",
    "optimizer.learning_rate=1e-3",
    "replay.capacity=10000",
    "schedule.steps=3200",
    "schedule.steps_per_update=2",
    "schedule.batch_size=32",
    "evaluation.period=3200",
    "evaluation.episodes=8",
    "evaluation.epsilon=0",
    "system.xla=auto",
    *changes,
  )
  directory = run_directory.RunDirectory(path / kind)
  trainer.train(config, directory)
  rows = directory.rows()
  losses = [row["loss"] for row in rows if row["loss"] is not None]
  assert np.all(np.isfinite(losses))
  return rows[-1]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["mmdqn", "qrdqn", "c51", "dqn", "iqn"])
@pytest.mark.parametrize("kind, size", [("Million", 1e6), ("Millionth", 1e-6)])
def test_huge_and_tiny_rewards_are_learnt_from(tmp_path, kind, size, agent):
  last = _run(tmp_path, kind, agent)
  assert last["evaluation_score"] > 0.8 * _LENGTH * size
  assert size / 4 < last["unit"] < size * 16


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["mmdqn", "qrdqn", "c51", "dqn", "iqn"])
def test_one_outlier_does_not_end_learning(tmp_path, agent):
  last = _run(tmp_path, "Outlier", agent)
  assert last["evaluation_score"] > 0.8 * _LENGTH
  assert last["unit"] < 64


@pytest.mark.slow
def test_sparse_rewards_set_the_unit(tmp_path):
  last = _run(tmp_path, "Sparse")
  assert last["unit"] <= 1


@pytest.mark.slow
def test_no_rewards_at_all_are_said(tmp_path, capfd):
  last = _run(tmp_path, "Zero")
  assert last["unit"] == 1
  assert last["evaluation_score"] == 0
  assert "no reward other than 0" in capfd.readouterr().err


@pytest.mark.slow
def test_a_kernel_that_sees_nothing_is_said(tmp_path, capfd):
  """Its loss may well fall meanwhile."""
  blind = ["agent.kernel=gaussian:1", "agent.unit=1"]
  last = _run(tmp_path, "Million", "mmdqn", *blind)
  assert last["beyond_reach"] > 0.25
  shown = capfd.readouterr().err
  assert shown.count("learns little, or wrongly") == 1
  assert "--set agent.unit=auto" in shown
