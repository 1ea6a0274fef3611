"""CSV curves from elsewhere, good and bad."""

import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.report import curve_files


@pytest.fixture
def read(tmp_path):
  def read_text(text):
    path = tmp_path / "curves.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return curve_files.read(path, "theirs", 250)

  return read_text


def test_a_row_is_a_seed(read):
  text = "Game,1,2\nbreakout,1,2.5\nBreakout,3,4,5\n\nMinAtar/Asterix,-1,,\n"
  one, two, other = read(text)
  assert (one.agent, one.game, one.seed) == ("theirs", "Breakout", 0)
  assert (two.game, two.seed) == ("Breakout", 1)
  np.testing.assert_array_equal(one.scores, [1, 2.5])
  np.testing.assert_array_equal(two.steps, [250, 500, 750])
  assert other.game == "MinAtar/Asterix"
  np.testing.assert_array_equal(other.scores, [-1])
  assert one.episodes is None


@pytest.mark.parametrize(
  "text, message",
  [
    ("Pong,1\nPong,x\n", r"line 2: a score must be a number, got 'x'"),
    ("Pong,1,,2\n", r"line 1: a score must be a number, got ''"),
    ("Pong,nan\n", r"line 1: a score must be a number, got 'nan'"),
    ("Pong,1\nPong\n", r"line 2 has a game and no scores"),
    ("Pong,1\n,2\n", r"line 2 has no game"),
    ('Pong,1\n"Pong,2\n', r"line 2 is not CSV"),
    (b"Pong,1\n\xff\xfe,2\n", r"is not text after line"),
    ("", r"holds no curves"),
    ("game,1,2\n", r"holds no curves"),
  ],
)
def test_malformed_files_name_the_line(read, text, message):
  with pytest.raises(errors.UserError, match=message):
    read(text)


def test_a_missing_file(tmp_path):
  with pytest.raises(errors.UserError, match="No such file"):
    curve_files.read(tmp_path / "none.csv", "theirs", 1)
