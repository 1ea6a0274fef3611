import io
import os
import shutil

import pytest

from tf_mmdrl.core import progress


class _Terminal(io.StringIO):
  def isatty(self):
    return True


@pytest.fixture
def clock(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
  return now


def test_terminal_rewrites_one_line_cut_to_its_width(monkeypatch, clock):
  monkeypatch.setattr(
    shutil, "get_terminal_size", lambda: os.terminal_size((30, 24))
  )
  stream = _Terminal()
  with progress.Progress(4, "chain", stream) as shown:
    shown.update(1, "a text that is far too long")
    shown.update(2)  # too soon to be worth writing
    clock[0] += 60
    shown.update(3)
    shown.update(5)  # the last always shows; rounds may go past the end
  first, second, last = stream.getvalue().split("\r")[1:]
  # What does not fit is left out whole; what is left matters most.
  assert first == "chain:  25%, 0:00 left".ljust(29)
  assert second == "chain:  75%, 0:20 left".ljust(29)
  assert last == "chain: 100%, 1:00 gone".ljust(29) + "\n"


def test_an_interrupt_leaves_the_line_to_who_tells_it(clock):
  stream = _Terminal()
  with (
    pytest.raises(KeyboardInterrupt),
    progress.Progress(4, "chain", stream) as shown,
  ):
    shown.update(1)
    raise KeyboardInterrupt
  assert "25%" in stream.getvalue() and "\n" not in stream.getvalue()


def test_elsewhere_plain_lines_ten_seconds_apart(clock):
  stream = io.StringIO()
  with progress.Progress(2, "theory", stream) as shown:
    for _ in range(25):
      clock[0] += 1
      shown.update(1, "herding")
  assert stream.getvalue() == (
    "theory:  50%, 0:10 gone, 0:10 left, herding\n"
    "theory:  50%, 0:20 gone, 0:20 left, herding\n"
  )


def test_what_was_done_before_tells_no_pace(clock):
  stream = io.StringIO()
  with progress.Progress(200, "train", stream, first=150) as shown:
    clock[0] += 10
    shown.update(160)  # 10 steps in 10 s: 40 s are left
    shown.forget_pace(160)
    clock[0] += 10
    shown.update(162)  # 2 steps in 10 s
  assert stream.getvalue() == (
    "train:  80%, 0:10 gone, 0:40 left\ntrain:  81%, 0:20 gone, 3:10 left\n"
  )


def test_a_quick_run_says_nothing_in_a_log():
  stream = io.StringIO()
  with progress.Progress(1, "quick", stream) as shown:
    shown.update(1)
  assert stream.getvalue() == ""


def test_hours():
  assert progress._clock(3725) == "1:02:05"
