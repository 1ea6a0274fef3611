"""Where a run stands, by its files."""

import fcntl
import json
import os

import pytest

from tf_mmdrl.core import errors, run_files, run_states

_HEAD = "step,updates,episodes,evaluation_score"


def _run(path, *rows, steps=300, enough=1e9):
  content = {
    "environment": {"name": "Pong"},
    "agent": {"name": "mmdqn"},
    "system": {"seed": 3},
    "schedule": {"steps": steps},
    "evaluation": {"enough": enough},
  }
  (path / "config.json").write_text(json.dumps({"config": content}))
  (path / "metrics.csv").write_text("\n".join([_HEAD, *rows, ""]))
  return run_files.RunFiles(path)


def test_the_newest_and_the_best_score_are_told_apart(tmp_path):
  files = _run(tmp_path, "100,5,1,2.0", "200,9,2,7.5", "250,10,3,", "260,,,4.5")
  state = run_states.read(files)
  assert (state.score, state.best, state.best_step) == (4.5, 7.5, 200)
  assert (state.step, state.steps) == (260, 300)
  assert state.activity == run_states.STOPPED
  assert state.identity == ("Pong", "mmdqn", 3)


@pytest.mark.parametrize(
  "row, enough, activity",
  [
    ("300,1,1,1.0", 1e9, run_states.FINISHED),
    ("299,1,1,1.0", 1e9, run_states.STOPPED),
    ("299,1,1,9.0", 9.0, run_states.FINISHED),
    ("299,1,1,1e30", 9.0, run_states.STOPPED),
    ("299,1,1,inf", 9.0, run_states.STOPPED),
    ("299,1,1,nan", 9.0, run_states.STOPPED),
    ("299,1,1,1e9", 1e9, run_states.STOPPED),
  ],
)
def test_a_run_is_finished_by_steps_or_by_its_score(
  tmp_path, row, enough, activity
):
  assert (
    run_states.read(_run(tmp_path, row, enough=enough)).activity == activity
  )


def test_a_checkpoint_may_be_newer_than_the_metrics(tmp_path):
  files = _run(tmp_path, "100,5,1,2.0")
  (files.checkpoints / "000000000150").mkdir(parents=True)
  assert run_states.read(files).step == 150


def test_a_run_without_metrics_has_no_score(tmp_path):
  state = run_states.read(_run(tmp_path))
  assert (state.step, state.score, state.best, state.counted) == (
    0,
    None,
    None,
    {},
  )


def test_who_holds_the_lock_runs(tmp_path):
  files = _run(tmp_path, "100,5,1,2.0")
  with open(tmp_path / "lock", "w") as lock:
    assert run_states.read(files).activity == run_states.STOPPED
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert run_states.read(files).activity == run_states.RUNNING


def test_without_proc_the_owner_is_asked_for(tmp_path, monkeypatch):
  monkeypatch.setattr(run_states, "_LOCKS", tmp_path / "nowhere")
  for owner, runs in ((os.getpid(), True), (2**22 + 1, False)):
    (tmp_path / "lock").write_text(f"{owner}\n")
    assert run_states.is_written(tmp_path) == runs


def test_the_unit_over_time_is_told():
  rows = [
    {"step": 1000.0, "unit": 1.0, "beyond_reach": 0.0},
    {"step": 2000.0, "unit": 16.0, "beyond_reach": 0.5},
    {"step": 3000.0, "unit": 16.0, "beyond_reach": 0.1},
    {"step": 4000.0, "unit": 64.0, "beyond_reach": 0.0},
  ]
  assert run_states.describe_unit(rows) == [
    "unit of return: 64 natural rewards",
    "  over time: 1 at step 1,000, 16 at step 2,000, 64 at step 4,000",
    "beyond the loss's reach: 0% of the targets, at most 50%",
  ]
  old = [{"step": 5.0, "loss": 1.0}]  # written before there were units
  assert run_states.describe_unit(old) == []


@pytest.mark.parametrize("steps", ["x", None, [], float("nan"), float("inf")])
def test_settings_that_are_no_numbers_are_told(tmp_path, steps):
  with pytest.raises(errors.UserError, match="schedule.steps .* no number"):
    run_states.read(_run(tmp_path, "100,5,1,2.0", steps=steps))
  with pytest.raises(errors.UserError, match="evaluation.enough .* no number"):
    run_states.read(_run(tmp_path, "100,5,1,2.0", enough=steps))


def test_a_count_that_is_none_is_none(tmp_path):
  state = run_states.read(_run(tmp_path, "0,,,1.0", "100,nan,inf,2.0"))
  assert state.counted == {"episodes": 0, "updates": 0}
