"""The line of training, in a terminal and in a log."""

import io
import os
import shutil

import pytest

from tf_mmdrl.core import progress, run_line


class _Terminal(io.TextIOWrapper):
  def __init__(self, encoding="utf-8"):
    super().__init__(io.BytesIO(), encoding)

  def isatty(self):
    return True

  def lines(self):
    self.flush()
    text = self.buffer.getvalue().decode(self.encoding)
    return [line.rstrip() for line in text.split("\r")[1:]]


@pytest.fixture
def clock(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  return now


def _width(monkeypatch, columns):
  monkeypatch.setattr(
    shutil, "get_terminal_size", lambda: os.terminal_size((columns, 24))
  )


def _row(step, score=None, evaluation=None):
  return {"step": step, "train_score": score, "evaluation_score": evaluation}


def _train(stream, clock, *, scores=(1.0, 8.0)):
  """100 of 400 steps in 10 s, then an evaluation."""
  line = run_line.RunLine(400, scores=scores, stream=stream)
  line.show(0, 0.5)
  clock[0] += 10
  line.report(_row(100, score=3.25, evaluation=4.5))
  line.show(100, 0.125)
  clock[0] += 10
  line.evaluate(100, 0.375)
  line.close()


def test_a_wide_terminal_shows_everything(monkeypatch, clock):
  _width(monkeypatch, 120)
  stream = _Terminal()
  _train(stream, clock)
  first, line, evaluating = stream.lines()
  assert line == (
    "train: ━━━╌╌╌╌╌╌╌╌╌  25%, 0:10 gone, 0:30 left, evaluation 4.50 ▁█▅,"
    " 10 steps/s, step 100, score 3.25, loss 0.125"
  )
  assert "left, evaluating 38%, evaluation 4.50 ▁█▅" in evaluating


def test_a_narrow_terminal_shows_what_is_wanted_most(monkeypatch, clock):
  _width(monkeypatch, 40)
  stream = _Terminal()
  _train(stream, clock)
  assert stream.lines()[1] == "train:  25%, 0:10 gone, 0:30 left"
  # The time that is gone gives way where that makes room.
  assert stream.lines()[2] == "train:  25%, 1:00 left, evaluating 38%"


def test_a_terminal_without_unicode_gets_no_drawing(monkeypatch, clock):
  _width(monkeypatch, 120)
  stream = _Terminal("ascii")
  _train(stream, clock)
  assert stream.lines()[1].startswith(
    "train:  25%, 0:10 gone, 0:30 left, evaluation 4.50, 10 steps/s"
  )


def test_a_log_has_plain_lines(clock):
  stream = io.StringIO()
  _train(stream, clock)
  assert stream.getvalue().splitlines()[0] == (
    "train:  25%, 0:10 gone, 0:30 left, evaluation 4.50, 10 steps/s, step 100,"
    " score 3.25, loss 0.125"
  )
  assert stream.getvalue().isascii()


def test_rates_begin_anew_where_learning_does(clock):
  """What was played before goes by much faster and would promise too much."""
  stream = io.StringIO()
  line = run_line.RunLine(1000, stream=stream)
  clock[0] += 1
  line.report(_row(100))
  assert line.rate == 100
  clock[0] += 1
  line.show(200, 0.5)  # the first round that learns is over
  assert line.rate is None
  clock[0] += 10
  line.report(_row(220))
  assert line.rate == 2
  line.show(220, 0.5)
  assert (
    stream.getvalue()
    .splitlines()[-1]
    .startswith("train:  22%, 0:12 gone, 6:30 left, 2 steps/s")
  )


def test_rates_and_times_left_are_of_what_was_left(clock):
  stream = io.StringIO()
  line = run_line.RunLine(400, first=300, stream=stream)
  clock[0] += 10
  line.report(_row(350))
  assert line.rate == 5
  line.show(350, None)
  assert "88%, 0:10 gone, 0:10 left, 5 steps/s" in stream.getvalue()


def test_scores_of_any_size_fit_the_line(clock):
  stream = io.StringIO()
  line = run_line.RunLine(400, scores=[1e37], stream=stream)
  line.report(_row(0, score=0.0045))
  clock[0] += 10
  line.show(100, 0.5)
  shown = stream.getvalue()
  assert "evaluation 1e+37," in shown and "score 0.0045," in shown


@pytest.mark.parametrize(
  "values, drawn",
  [([0, 7, 3.5], "▁█▅"), ([2, 2], "▄▄"), ([-1, -1.0, -8], "██▁")],
)
def test_sparkline(values, drawn):
  assert run_line.sparkline(values) == drawn
