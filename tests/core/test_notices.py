"""What is said to nobody ends nothing."""

import io
import os
import sys

import pytest

from tf_mmdrl.core import notices, progress


class _Gone(io.StringIO):
  """A pipe whose reader has ended."""

  def write(self, text):
    raise BrokenPipeError(32, "Broken pipe")


class _Full(io.StringIO):
  """A log on a full disk, which is found out late."""

  def flush(self):
    raise OSError(28, "No space left on device")


def _closed():
  stream = io.StringIO()
  stream.close()
  return stream


@pytest.mark.parametrize("make", [_Gone, _Full, _closed])
def test_notices_to_nobody_end_nothing(monkeypatch, make):
  monkeypatch.setattr(sys, "stderr", make())
  notices.note("it goes on")
  notices.warn("it goes on")


@pytest.mark.parametrize("make", [_Gone, _Full])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_for_nobody_ends_nothing(monkeypatch, make, is_terminal):
  stream = make()
  stream.isatty = lambda: is_terminal
  monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
  with progress.Progress(2, "train", stream) as shown:
    shown.update(1)
    shown.update(2)


def test_a_name_that_is_no_text_is_shown(capsys):
  notices.note(f"the run is in {os.fsdecode(b'a' + bytes([255]))}")
  capsys.readouterr()


def test_each_is_a_line(capsys):
  notices.note("a")
  notices.warn("b")
  notices.show("c\n", sys.stdout)
  out, err = capsys.readouterr()
  assert err == "mmdrl: a\nmmdrl: warning: b\n" and out == "c\n"
