"""The raw data of a report, written and read again."""

import dataclasses

import numpy as np
import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.report import evaluation_files
from tf_mmdrl.report.results import Run

_HEAD = "agent,game,seed,step,score,episodes\n"


def run(agent="mmdqn", seed=0, episodes=(8, 8)):
  return Run(
    agent,
    "MinAtar/Breakout",
    seed,
    np.array([100.0, 200.0]),
    np.array([0.1, 1 / 3]) + seed,
    None if episodes is None else np.array(episodes, float),
    {},
    "",
  )


def test_what_is_written_is_read(tmp_path):
  runs = [run(), run("dqn", 1), run("a, b=2", 3, episodes=None)]
  path = tmp_path / "evaluations.csv"
  path.write_text(evaluation_files.to_csv(runs))
  for before, after in zip(runs, evaluation_files.read(path), strict=True):
    for field in dataclasses.fields(Run):
      if field.name != "origin":
        np.testing.assert_array_equal(
          getattr(before, field.name), getattr(after, field.name)
        )


def test_names_are_no_formulas():
  text = evaluation_files.to_csv([run("=HYPERLINK()")])
  assert "\n'=HYPERLINK()," in text


@pytest.mark.parametrize(
  "text, message",
  [
    ("", "does not begin with agent,game"),
    ("agent,game\n", "does not begin with agent,game"),
    (_HEAD, "holds no evaluation"),
    (_HEAD + "dqn,Pong,0,100,nan,8\n", "line 2: an evaluation is agent"),
    (_HEAD + "dqn,Pong,0,100,1,8\ndqn,Pong,0,x,1,8\n", "line 3: an eval"),
    (_HEAD + "dqn,Pong,0,100\n", "line 2: an evaluation is"),
    (_HEAD + ",Pong,0,100,1,8\n", "line 2: an evaluation is"),
    (_HEAD + '"dqn', "is not CSV"),
  ],
)
def test_malformed_files_name_the_line(tmp_path, text, message):
  path = tmp_path / "evaluations.csv"
  path.write_text(text)
  with pytest.raises(errors.UserError, match=message):
    evaluation_files.read(path)


def test_a_report_of_a_report_is_the_same(tmp_path, capsys):
  runs = [run(agent, seed) for agent in ("dqn", "mmdqn") for seed in (0, 1)]
  first = tmp_path / "first"
  first.mkdir()
  (first / "evaluations.csv").write_text(evaluation_files.to_csv(runs))
  line = ["report", "--results", str(first / "evaluations.csv"), "-o"]
  assert main.main([*line, str(tmp_path / "second")]) == 0
  for name in ("evaluations.csv",):
    old, new = (
      (tmp_path / part / name).read_text() for part in ("first", "second")
    )
    assert old == new
  # Beside another one its agents have names of their own.
  again = ["--results", str(tmp_path / "second" / "evaluations.csv")]
  assert main.main([*line, str(tmp_path / "third"), *again]) == 0
  third = (tmp_path / "third" / "evaluations.csv").read_text()
  assert "mmdqn (first)," in third and "mmdqn (second)," in third
  assert "8 runs" in (tmp_path / "third" / "report.html").read_text()
