"""`mmdrl ls` and `mmdrl compare`, on runs that were never trained."""

import os
import re
import time

import numpy as np
import report_fixtures

from tf_mmdrl.cli import main


def _runs(path):
  for seed, score in enumerate([4.0, 5.0, 9.0]):
    report_fixtures.write_run(
      path / f"mmdqn-{seed}",
      "environment.name=Pong",
      f"system.seed={seed}",
      "schedule.steps=3000",
      scores=[20.0, score - 1, score],
    )
  report_fixtures.write_run(
    path / "dqn",
    "environment.name=Pong",
    "agent.name=dqn",
    "network.num_particles=1",
    scores=[7.0],
  )
  return str(path)


def test_compare_has_means_with_intervals(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  assert main.main(["compare", _runs(tmp_path)]) == 0
  out = capsys.readouterr().out
  lines = [line.split() for line in out.splitlines()]
  assert lines[0] == ["Pong"]
  # The best mean first, though one seed of the other is better.
  assert lines[2] == ["dqn", "1", "7.00", "-", "7.00", "7.00"]
  name, seeds, mean, low, _, high, lowest, highest = lines[3]
  assert (name, seeds, mean, lowest, highest) == (
    "mmdqn",
    "3",
    "6.00",
    "4.00",
    "9.00",
  )
  generator = np.random.default_rng(0)
  means = generator.choice([4.0, 5.0, 9.0], [10_000, 3]).mean(axis=1)
  expected = np.percentile(means, [2.5, 97.5])
  np.testing.assert_allclose([float(low), float(high)], expected, atol=0.35)
  assert "its last evaluation" in out


def test_compare_takes_other_evaluations(tmp_path, capsys):
  runs = _runs(tmp_path)
  assert main.main(["compare", runs, "--last", "2"]) == 0
  assert re.search(r"mmdqn +3 +5\.50 ", capsys.readouterr().out)
  assert main.main(["compare", runs, "--last", "0"]) == 0
  assert re.search(r"mmdqn +3 +20\.00 ", capsys.readouterr().out)
  assert main.main(["compare", runs, "--last", "-1"]) == 2
  assert "--last must be at least 0" in capsys.readouterr().err


def test_ls_lists_runs_the_newest_last(tmp_path, capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "100")
  monkeypatch.chdir(tmp_path)
  assert main.main(["ls"]) == 0
  assert "no runs here yet" in capsys.readouterr().out
  _runs(tmp_path / "runs")
  (tmp_path / "runs" / "torn").mkdir()
  (tmp_path / "runs" / "torn" / "config.json").write_text("{")
  old = time.time() - 7200
  for name in ("config.json", "metrics.csv"):
    os.utime(tmp_path / "runs" / "mmdqn-1" / name, (old, old))
  assert main.main(["ls"]) == 0
  out = capsys.readouterr().out
  lines = out.splitlines()
  assert lines[0].split() == [
    "run",
    "state",
    "step",
    "of",
    "score",
    "best",
    "age",
  ]
  assert lines[1].split() == [
    "runs/mmdqn-1",
    "finished",
    "3,001",
    "3,000",
    "5.00",
    "20.00",
    "2.0",
    "h",
  ]
  assert lines[5].startswith("broken: 'runs/torn' is not a run")


def test_ls_fits_a_narrow_terminal(tmp_path, capsys, monkeypatch):
  monkeypatch.chdir(tmp_path)
  _runs(tmp_path / "runs" / ("long-name-" * 9))
  for columns in (40, 60, 80):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main.main(["ls"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    runs = [line for line in lines if "..." in line]
    assert len(runs) == 4
    for line in runs:
      assert line.partition("  ")[0].endswith(("dqn", "-0", "-1", "-2"))
    for text in ("finished", "3,001", "5.00", "20.00", " s"):  # nothing is lost
      assert text in out
