"""The one reader of run directories."""

import json

import pytest

from tf_mmdrl.core import errors, run_files

_CONFIG = {
  "environment": {"name": "Pong"},
  "agent": {"name": "mmdqn", "kernel": "energy"},
  "system": {"seed": 3},
}


def _make(path, config=_CONFIG, metrics=None):
  path.mkdir(parents=True, exist_ok=True)
  (path / "config.json").write_text(json.dumps({"config": config}))
  if metrics is not None:
    (path / "metrics.csv").write_text(metrics)
  return run_files.RunFiles(path)


def test_what_a_run_is(tmp_path):
  run = _make(tmp_path)
  assert run.identity() == ("Pong", "mmdqn", 3)
  assert run.settings()["agent.kernel"] == "energy"
  assert run.rows() == []


def test_rows_are_numbers_and_what_is_unknown_is_none(tmp_path):
  run = _make(tmp_path, metrics="step,score\n5,2.5\n10,0.0\n20,\n")
  assert run.rows() == [
    {"step": 5.0, "score": 2.5},
    {"step": 10.0, "score": 0.0},
    {"step": 20.0, "score": None},
  ]
  assert run_files.last(run.rows(), "score") == 0.0
  assert run_files.last([], "score") is None


def test_a_line_that_is_being_written_is_left_out(tmp_path):
  run = _make(tmp_path, metrics="step,score\n10,1.5\n20,1e-")
  assert [row["step"] for row in run.rows()] == [10.0]


def test_runs_are_found_below_a_directory_and_each_once(tmp_path):
  for name in ("b", "a"):
    _make(tmp_path / "sweep" / name)
  sweep = tmp_path / "sweep"
  texts = [str(sweep / "b"), str(sweep), str(sweep / "b" / ".." / "a")]
  found = run_files.find(texts)
  assert [run.path.name for run in found] == ["b", "a"]


@pytest.mark.parametrize(
  "content, message",
  [
    (None, "is not a run: it has no config.json"),
    ("{", "its config.json cannot be read"),
    ("[1]", "cannot be read: it holds a list"),
    ('{"config": {"agent": 1}}', "it has no groups of settings"),
    ('{"config": {}}', "does not say its environment.name"),
    (
      json.dumps({"config": {**_CONFIG, "system": {"seed": "x"}}}),
      "has system.seed 'x', which is no whole number",
    ),
    (
      json.dumps({"config": {**_CONFIG, "system": {"seed": 1e400}}}),
      "has system.seed inf, which is no whole number",
    ),
    (
      json.dumps({"config": {**_CONFIG, "agent": {"name": "\x1b[2J"}}}),
      r"names '\x1b[2J'",
    ),
    ("[" * 100_000, "it is nested too deeply"),
    ('{"versions": null}', "its versions are None"),
  ],
)
def test_what_is_no_run_is_told(tmp_path, content, message):
  if content is not None:
    (tmp_path / "config.json").write_text(content)
  with pytest.raises(errors.UserError) as caught:
    run_files.RunFiles(tmp_path).identity()
  assert message in str(caught.value)


@pytest.mark.parametrize(
  "metrics, message",
  [
    ("step,score\n10,one\n", "could not convert"),
    ("\ufeffstep,score\n10,1\n", "line 2 has no step"),
    ("step,score\n10,1\n,2\n", "line 3 has no step"),
    ("step,score\nnan,1\n", "line 2 has no step"),
    ("step,score\ninf,1\n", "line 2 has no step"),
    ("step,score\n10,1,2\n", "float"),
    ("step\n" + "9" * 200_000 + "\n", "field larger"),
  ],
)
def test_metrics_that_are_no_numbers_are_told(tmp_path, metrics, message):
  run = _make(tmp_path, metrics=metrics)
  with pytest.raises(errors.UserError, match=f"cannot be read: .*{message}"):
    run.rows()
