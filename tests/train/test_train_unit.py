"""Runs whose rewards are multiplied by powers of two are the same runs."""

import pathlib
import sys

import gymnasium
import pytest
import train_fixtures

from tf_mmdrl.train import run_directory, runs, trainer

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))

import scale  # noqa: E402

_POWERS = (-12, -3, 5, 12)


for _power in (0, *_POWERS):
  gymnasium.register(
    f"CartPoleTwoToThe{_power}-v1",
    entry_point=scale.Times,
    max_episode_steps=200,
    kwargs={"factor": 2.0**_power},
  )


def _run(path, agent, power, *changes):
  """The metrics of a run, and the actions in its replay."""
  config = train_fixtures.small(
    f"environment.name=CartPoleTwoToThe{power}-v1",
    "environment.max_episode_steps=0",
    f"agent.name={agent}",
    f"network.num_particles={1 if agent == 'dqn' else 8}",
    *(
      ["agent.target_particles=8", "agent.choice_particles=8"]
      * (agent == "iqn")
    ),
    "optimizer.learning_rate=1e-3",
    "replay.capacity=10000",
    *changes,
  )
  directory = run_directory.RunDirectory(path / f"{agent}{power}")
  trainer.train(config, directory)
  with runs.restored(directory.path) as state:
    rings = [
      ring
      for ring in state.replay.shards[0].replay.store.rings
      if ring is not None
    ]
    # Actions and types of steps; observations must be the same, too.
    stored = [r.tobytes() for r in rings if r.dtype.kind == "i" or r.ndim > 2]
    assert len(stored) >= 3
  return directory.rows(), stored


def _same(tmp_path, agent, powers, *changes):
  rows, actions = _run(tmp_path, agent, 0, *changes)
  assert len({row["unit"] for row in rows}) > 1  # it was found on the way
  for power in powers:
    other_rows, other_actions = _run(tmp_path, agent, power, *changes)
    assert other_actions == actions
    for row, other in zip(rows, other_rows, strict=True):
      for name in ("step", "updates", "episodes", "loss"):
        assert other[name] == row[name]
      for name in ("train_score", "evaluation_score"):
        if row[name] is not None:
          assert other[name] == row[name] * 2.0**power
      if row["updates"]:
        assert other["unit"] == row["unit"] * 2.0**power


def test_a_short_run_is_the_same(tmp_path):
  # Without XLA, for which tests/agents/test_unit.py has the same check.
  _same(tmp_path, "mmdqn", [-12, 5], "schedule.steps=1280")


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["mmdqn", "qrdqn", "iqn", "c51", "dqn"])
def test_5000_steps_of_learning_are_the_same(tmp_path, agent):
  _same(tmp_path, agent, _POWERS, "schedule.steps=5200", "system.xla=auto")
