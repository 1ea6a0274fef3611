"""`mmdrl chain` and `mmdrl theory`, as a user runs them."""

import csv
import logging
import os
import subprocess
import sys

import pytest

from tf_mmdrl.cli import main, theory_command
from tf_mmdrl.tabular import claims, theory_dimensions

_QUICK = [
  "--seeds=2",
  "--particles=4",
  "--iterations=1",
  "--episodes=3",
  "--rollouts=20",
]


def _table(path):
  with path.open() as file:
    return list(csv.DictReader(file))


def _widest(printed, *, but):
  """The width of the widest line; a path may be as long as it is."""
  return max(len(line) for line in printed.splitlines() if but not in line)


@pytest.fixture
def warnings(caplog):
  """What TensorFlow's own logger has warned of."""
  logger = logging.getLogger("tensorflow")
  logger.addHandler(caplog.handler)
  yield caplog
  logger.removeHandler(caplog.handler)


def test_chain_writes_its_table_and_pictures(
  tmp_path, capsys, warnings, monkeypatch
):
  where = tmp_path / "new" / "place"
  monkeypatch.setenv("COLUMNS", "80")
  command = ["chain", "--lengths=1-2,11", *_QUICK, "-o", str(where)]
  assert main.main([*command, "--kernel=laplace:1"]) == 0
  rows = _table(where / "chain.csv")
  columns = "K,method,moment,mean,ci_low,ci_high,monte_carlo,exact"
  assert ",".join(rows[0]) == columns
  assert len(rows) == 3 * 5 * 6
  assert {row["K"] for row in rows} == {"1", "2", "11"}
  assert "mmdrl laplace:1" in {row["method"] for row in rows}
  assert (where / "chain.png").read_bytes().startswith(b"\x89PNG")
  assert "<svg" in (where / "chain.svg").read_text()
  printed = capsys.readouterr().out
  assert "gaussian-mmdrl" in printed and "relative to exact" in printed
  assert _widest(printed, but=str(where)) <= 80
  table = printed.partition("interval\n")[2].partition("Error")[0]
  heads = [line.split()[2:] for line in table.splitlines() if "method" in line]
  assert sum(heads, []) == ["mean", "2nd", "3rd", "4th", "5th", "6th"]
  assert len(heads) > 1
  assert not warnings.messages  # of functions that are traced again and again


@pytest.mark.slow
def test_theory_writes_its_table_and_pictures(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  # A slow test has all dimensions and sizes.
  monkeypatch.setattr(theory_dimensions, "DIMENSIONS", (1, 5))
  monkeypatch.setattr(theory_dimensions, "SIZES", (4, 8, 16))
  assert main.main(["theory", "--mdps=20", "-o", str(tmp_path)]) == 0
  rows = _table(tmp_path / "theory.csv")
  assert list(rows[0]) == ["claim", "setting", "measured", "bound", "holds"]
  assert {row["holds"] for row in rows if "Theorem" in row["claim"]} == {"True"}
  assert (tmp_path / "theory.png").read_bytes().startswith(b"\x89PNG")
  assert "<svg" in (tmp_path / "theory.svg").read_text()
  printed = capsys.readouterr().out
  assert f"of {len(rows)} claims hold" in printed
  assert _widest(printed, but=str(tmp_path)) <= 80


def test_a_narrow_terminal_has_the_setting_of_a_claim_below(
  capsys, monkeypatch
):
  claim = claims.Claim("A claim", "a kernel; its least MMD", 0.0179601, 0, True)
  for columns, shown in (
    ("40", ["    a kernel; its least MMD"]),
    ("80", []),
  ):
    monkeypatch.setenv("COLUMNS", columns)
    theory_command._print([claim])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  holds  0.0179601    against 0")
    assert lines[2:-1] == shown, columns
    assert lines[-1] == "1 of 1 claims hold"


@pytest.mark.parametrize(
  "command, message",
  [
    ("chain --lengths=0", "K must be at least 1, got 0"),
    ("chain --lengths=-3", "K must be at least 1, got -3"),
    ("chain --lengths=ten", "such as 1-15 or 5,10, got 'ten'"),
    ("chain --lengths=5-2", "at least one chain length"),
    ("chain --particles=0", "particles must be at least 1, got 0"),
    ("chain --gamma=1.5", "gamma must lie in [0, 1], got 1.5"),
    ("chain --kernel=gausian:8", "did you mean 'gaussian'"),
    ("chain --kernel=gaussian:-8", "must be positive and finite, got -8.0"),
    ("chain --methods=qrdl", "did you mean 'qrdrl'"),
    ("chain --methods=", "at least one of gaussian-mmdrl"),
    ("theory --mdps=0", "--mdps must be at least 1, got 0"),
  ],
)
def test_bad_input_is_one_clear_line(command, message, capsys):
  assert main.main(command.split()) == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.startswith("mmdrl: ") and error.count("\n") == 1


@pytest.mark.parametrize("command", ["chain", "theory"])
def test_unwritable_directory_is_one_clear_line(command, tmp_path, capsys):
  (tmp_path / "file").touch()
  where = str(tmp_path / "file" / "below")
  assert main.main([command, "-o", where]) == 2
  error = capsys.readouterr().err
  assert error.startswith(f"mmdrl: cannot write to {where!r}: ")
  assert error.count("\n") == 1


def test_missing_matplotlib_is_said_before_the_run(tmp_path):
  (tmp_path / "matplotlib.py").write_text("raise ImportError('none here')")
  path = os.pathsep.join([str(tmp_path), os.getcwd()])
  done = subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", "theory", "-o", str(tmp_path / "out")],
    env={**os.environ, "PYTHONPATH": path},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 2
  assert "pip install 'tf-mmdrl[plots]'" in done.stderr.splitlines()[-1]


def test_help_answers_without_tensorflow():
  done = subprocess.run(
    [sys.executable, "-X", "importtime", "-m", "tf_mmdrl", "chain", "--help"],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0
  assert "--lengths" in done.stdout
  assert "tensorflow" not in done.stderr
