"""Runs whose rewards are multiplied by powers of two are the same runs."""

import json
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


def test_the_benchmark_keeps_every_game_that_was_played(
  tmp_path, monkeypatch, capsys
):
  def fails(*_):
    raise AssertionError("what has been played is trained again")

  monkeypatch.setattr(scale, "sweep", fails)
  for agent, score in (("mmdqn", 5000), ("qrdqn", 4690)):
    run = tmp_path / "scale:CartPoleTimes10-v1" / agent / "seed3"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"git_commit": "abc"}))
    (run / "fresh.json").write_text(json.dumps([score] * 20))
  kept = tmp_path / "scale.json"
  flags = ["--factors", "10", "--seeds", "3", "--json", str(kept)]
  monkeypatch.setattr(
    sys, "argv", ["scale.py", *flags, "--run-dir", str(tmp_path)]
  )
  assert scale.main() == 1  # one of them has not solved it
  out = capsys.readouterr().out
  assert "1/1     500.0\n" in out and "0/1     469.0\n" in out
  content = json.loads(kept.read_text())
  assert content["runs"][1] == {
    "agent": "qrdqn",
    "factor": "10",
    "seed": 3,
    "commit": "abc",
    "scores": [4690] * 20,
  }
  assert content["command"].startswith("python scale.py --factors 10")
