"""What people change in a run's records is told; what training adds is not."""

import json

import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors, run_files, run_records, whole_files

_KEPT = "step,evaluation_score\n100,1.0\n200,2.0\n"


def _run(path, more, *, step=200, steps=400, at="step"):
  """A run with a checkpoint at a step, and metrics that have more lines."""
  settings = {
    "environment": {"name": "chain"},
    "agent": {"name": "mmdqn"},
    "system": {"seed": 1},
    "schedule": {"steps": steps},
    "evaluation": {"at": at},
  }
  (path / "config.json").write_text(json.dumps({"config": settings}))
  (path / "metrics.csv").write_text(_KEPT + more)
  place = path / "checkpoints" / run_records.name_of(step)
  place.mkdir(parents=True)
  content = {"config": settings}
  whole_files.write_json(place / run_records.STATE, content)
  (place / run_records.METRICS).write_text(_KEPT)
  files = {
    file.name: whole_files.digest(file.read_bytes()) for file in place.iterdir()
  }
  whole_files.write_json(place / run_records.MANIFEST, {"files": files})
  return run_files.RunFiles(path)


@pytest.mark.parametrize(
  "more",
  ["", "300,3.0\n", "300,3.0\n400,4.0\n", "300,3", "210,3.0\n40"],
)
def test_rows_that_training_added_since_are_taken(tmp_path, more):
  run_records.check_metrics(_run(tmp_path, more))


@pytest.mark.parametrize(
  "more, line",
  [
    ("150,99.0\n", 4),
    ("200,99.0\n", 4),
    ("300,3.0\n300,99.0\n", 5),
    ("300,3.0\n250,99.0\n", 5),
  ],
)
def test_rows_that_training_cannot_have_added_are_told(tmp_path, more, line):
  with pytest.raises(errors.UserError, match=f"changed in line {line} after"):
    run_records.check_metrics(_run(tmp_path, more))


def test_after_the_last_step_comes_no_row(tmp_path):
  files = _run(tmp_path, "500,99.0\n", step=400)
  with pytest.raises(errors.UserError, match="changed in line 4 after"):
    run_records.check_metrics(files)


@pytest.mark.parametrize("changed", [dict(at="game"), dict(steps=800)])
def test_a_run_that_is_not_over_may_have_later_ones(tmp_path, changed):
  run_records.check_metrics(_run(tmp_path, "500,9\n", step=400, **changed))


def test_each_edited_file_is_told(tmp_path, capsys):
  files = _run(tmp_path, "300,3.0\n")
  assert not run_records.edits(files)
  files.metrics.write_text(_KEPT.replace("2.0", "9.0"))
  (scores,) = run_records.edits(files)
  assert "metrics.csv' was changed in line 3 after" in scores
  assert main.main(["ls", str(tmp_path)]) == main.EXIT_OK
  table = capsys.readouterr().out
  assert "stopped, edited" in table and "\nedited: " in table
  content = json.loads(files.config_file.read_text())
  content["config"]["evaluation"]["at"] = "game"
  files.config_file.write_text(json.dumps(content))
  settings, _ = run_records.edits(files)
  assert 'evaluation.at: "step" -> "game"' in settings


def test_what_is_left_of_a_run_is_its_newest_checkpoint_or_nothing(tmp_path):
  files = _run(tmp_path, "", step=1200)
  assert run_records.what_is_left(files).endswith("checkpoint of step 1,200")
  left = run_records.what_is_left(run_files.RunFiles(tmp_path / "new"))
  assert left == "there is no checkpoint yet, so the same command begins anew"
