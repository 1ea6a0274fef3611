"""The rows of metrics.csv."""

import pytest

from tf_mmdrl.core import run_files
from tf_mmdrl.evaluation.evaluator import Evaluation
from tf_mmdrl.train import metrics


def add(rows, step, scores=()):
  evaluation = Evaluation(list(scores), [1] * len(scores)) if scores else None
  rows.add_games([1.0, 2.0], 90)
  return rows.add_row(
    step=step,
    updates=step // 4,
    epsilon=0.5,
    replay_steps=step,
    evaluation=evaluation,
    unit=2.0,
    beyond_reach=0.25,
  )


def test_evaluations_are_also_in_the_measure_of_human_play(tmp_path):
  rows = metrics.Metrics(tmp_path / "metrics.csv", "ALE/Breakout-v5")
  rows.begin()
  add(rows, 100)
  add(rows, 200, [30.5, 30.5])
  add(rows, 300, [0.7, 2.7])
  assert (tmp_path / "metrics.csv").read_text() == rows.text
  read = run_files.RunFiles(tmp_path).rows()
  found = [row["evaluation_human_normalized"] for row in read]
  # Random play scores 1.7, human play 30.5.
  assert found == [None, 1.0, pytest.approx(0.0)]
  assert [row["evaluation_episodes"] for row in read] == [None, 2.0, 2.0]
  assert (rows.best_score, rows.best_step) == (30.5, 200)


def test_where_no_human_score_is_known_the_cell_stays_empty(tmp_path):
  rows = metrics.Metrics(tmp_path / "metrics.csv", "MinAtar/Breakout")
  row = add(rows, 100, [3.0])
  assert row["evaluation_score"] == 3.0
  assert row["evaluation_human_normalized"] is None


def test_a_file_goes_on_with_the_columns_it_has(tmp_path):
  """A run that began before a column was added stays one table."""
  old = metrics.Metrics(tmp_path / "metrics.csv", "Pong")
  add(old, 100, [1.0])
  lines = old.text.splitlines()
  text = "".join(line.rpartition(",")[0] + "\n" for line in lines)
  new = metrics.Metrics(tmp_path / "metrics.csv", "Pong")
  new.set_state(old.state(), text)
  new.begin()
  add(new, 200, [2.0])
  rows = run_files.RunFiles(tmp_path).rows()
  assert [row["evaluation_score"] for row in rows] == [1.0, 2.0]
  assert all(None not in row and len(row) == 11 for row in rows)
  assert new.text == (tmp_path / "metrics.csv").read_text()


def test_a_phase_ends_within_a_game_that_is_too_long(tmp_path):
  rows = metrics.Metrics(tmp_path / "metrics.csv", "Pong")
  rows.add_games([1.0], 29)
  assert not rows.end_long_phase(59, period=30)
  assert rows.phase == 29  # the next game may still end it
  rows.add_games([1.0], 31)
  assert not rows.end_long_phase(60, period=30)  # a game has ended it
  assert rows.phase == 31
  rows.last_game = 29
  assert rows.end_long_phase(60, period=30)
  assert rows.phase == 60
  assert not rows.end_long_phase(60, period=30)  # it is over already
