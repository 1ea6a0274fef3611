"""A real sweep of two small runs, cut and continued."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets, run_process, sweeps


def _arguments(directory, **changed):
  small = train_fixtures.small("schedule.steps=480")
  base = presets.get("quickstart").completed()
  settings = [
    f"{name}={new}"
    for (name, old), (_, new) in zip(
      configs.fields(base), configs.fields(small)
    )
    if old != new
  ]
  flags = {
    "--envs": "MinAtar/Breakout",
    "--agents": "dqn,mmdqn",
    "--seeds": "0",
    "--preset": "quickstart",
    "--run-dir": str(directory),
    **changed,
  }
  line = ["sweep", *(part for pair in flags.items() for part in pair)]
  for setting in settings:
    if not setting.startswith("network.num_particles"):
      line += ["--set", setting]
  return line


def test_a_sweep_goes_on_where_it_was_cut(tmp_path, capsys):
  line = _arguments(tmp_path / "sweep")
  process = subprocess.Popen(
    [sys.executable, "-m", "tf_mmdrl", *line],
    env={**os.environ, "PYTHONPATH": str(pathlib.Path.cwd())},
    start_new_session=True,
  )
  table = tmp_path / "sweep" / "sweep.csv"
  deadline = time.monotonic() + 240
  while not table.exists() and time.monotonic() < deadline:
    time.sleep(0.2)
  process.terminate()  # in the middle of the second run, which is told too
  assert process.wait() == main.EXIT_STOPPED
  assert [row.agent for row in sweeps.finished(tmp_path / "sweep")] == ["dqn"]
  assert main.main(line) == 0
  printed = capsys.readouterr().out
  assert "1 of 2 runs are finished already" in printed
  assert "[2/2] MinAtar/Breakout mmdqn seed 0" in printed
  rows = sweeps.finished(tmp_path / "sweep")
  assert [row.agent for row in rows] == ["dqn", "mmdqn"]
  for row in rows:
    path = tmp_path / "sweep" / "MinAtar-Breakout" / row.agent / "seed0"
    assert (path / "config.json").exists()


@pytest.mark.parametrize(
  "flag, value, message",
  [
    ("--agents", "dqn,mmdqm", "did you mean.*mmdqn"),
    ("--agents", ",", "--agents wants names"),
    ("--seeds", "0,x", "--seeds wants whole numbers"),
    ("--jobs", "0", "--jobs must be at least 1"),
    ("--preset", "minatr", "did you mean.*minatar"),
    ("--set", "iqn:network.num_particles=8", "of this sweep.*dqn.*mmdqn"),
    ("--set", "dqn:network.num_particle=8", "did you mean.*num_particles"),
    ("--set", "agent.gamma=many", "'agent': gamma must be a number"),
    ("--set", "mmdqn:agent.kernel=gausian:1", "did you mean.*gaussian"),
    ("--set", "evaluation.score=cvr:1", "did you mean.*cvar"),
    ("--envs", "CartPol-v1", "did you mean.*CartPole-v1"),
    ("--envs", "MinAtar/Brekout", "did you mean.*Breakout"),
  ],
)
def test_bad_input_is_one_line(flag, value, message, tmp_path, capsys):
  line = _arguments(tmp_path, **{flag: value})
  assert main.main(line) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1
  assert re.search(message, error)


def test_steps_are_checked_before_the_first_run(tmp_path, capsys):
  line = _arguments(tmp_path)
  at = line.index("schedule.steps=480")
  line[at - 1 : at + 1] = ["--steps", "many"]
  assert main.main(line) == 2
  assert "steps must be a whole number" in capsys.readouterr().err


def test_what_killed_a_run_is_said(tmp_path):
  log = tmp_path / "seed0.log"
  log.write_text("step 10\nstep 20\n")
  assert run_process.reason(2, log) == "step 20"
  for code in (-signal.SIGKILL, 137):
    said = run_process.reason(code, log)
    assert said.startswith("killed (SIGKILL): for want of memory, or because")
    assert said.endswith("Its last line: step 20")


def test_a_failed_run_shows_why(tmp_path, capsys):
  run = tmp_path / "MinAtar-Breakout" / "dqn" / "seed0"
  run.mkdir(parents=True)
  (run / "mine.txt").touch()
  assert main.main(_arguments(tmp_path, **{"--agents": "dqn"})) == 2
  told = capsys.readouterr()
  assert "dqn seed 0: begins" in told.out
  assert re.search("dqn seed 0: failed: .* holds other files", told.out)
  assert "1 of 1 runs failed" in told.err


def test_a_setting_may_be_one_agents_own(tmp_path, monkeypatch):
  planned = []

  def run(jobs, *_, **__):
    planned.extend(jobs)
    return sweeps.Outcome(stopped=0, failed=0)

  monkeypatch.setattr(sweeps, "run", run)
  line = _arguments(tmp_path)
  line += ["--set", "mmdqn:agent.kernel=gaussian:3", "--set", "agent.n_step=2"]
  assert main.main(line) == 0
  dqn, mmdqn = (job.arguments for job in planned)
  assert list(dqn[-2:]) == list(mmdqn[-2:]) == ["--set", "agent.n_step=2"]
  assert list(mmdqn[-4:-2]) == ["--set", "agent.kernel=gaussian:3"]
  assert not any("kernel" in part for part in dqn)


def test_a_sweep_that_has_finished_nothing_has_no_table(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(sweeps, "run", lambda *_, **__: sweeps.Outcome(2, 0))
  assert main.main(_arguments(tmp_path)) == main.EXIT_STOPPED
  out = capsys.readouterr().out
  assert out == "not all runs are finished; run the same command to go on\n"


@pytest.mark.parametrize("code, stopped", [(0, 0), (75, 1)])
def test_runs_that_end_after_ctrl_c_are_counted(tmp_path, code, stopped):
  """Ctrl-C may come when a run is at its end: then nothing is left to do."""

  class Process:
    def wait(self):
      time.sleep(0.1)  # the sweep waits for this thread by then
      os.kill(os.getpid(), signal.SIGINT)
      time.sleep(0.2)
      job.directory.mkdir(parents=True)
      rows = "step,evaluation_score\n10,2.5\n"
      (job.directory / "metrics.csv").write_text(rows)
      return code

    def stop(self):
      pass

  (job,) = sweeps.plan(tmp_path, ["CartPole-v1"], [0], {"dqn": []})
  shown = []
  outcome = sweeps.run(
    [job], tmp_path, at_once=1, show=shown.append, start=lambda _: Process()
  )
  assert outcome == sweeps.Outcome(stopped=stopped, failed=0)
  assert len(sweeps.finished(tmp_path)) == 1 - stopped
  assert sweeps.STOPPING in shown


def test_a_damaged_table_names_its_line(tmp_path, capsys):
  (tmp_path / "sweep.csv").write_text(",".join(sweeps.Row._fields) + "\na,b\n")
  assert main.main(_arguments(tmp_path)) == 2
  assert "line 2" in capsys.readouterr().err


def test_a_longer_sweeps_row_takes_the_place_of_the_shorter_ones(tmp_path):
  rows = [
    sweeps.Row("A", "dqn", 0, 1.0, 2.0, 1.0, "--steps 1"),
    sweeps.Row("A", "dqn", 1, 3.0, 3.0, 1.0, "--steps 1"),
    sweeps.Row("A", "dqn", 0, 5.0, 5.0, 1.0, "--steps 2"),
  ]
  for row in rows:
    sweeps._append(tmp_path / "sweep.csv", row)
  assert sweeps.finished(tmp_path) == rows[1:]


def test_table_averages_over_seeds():
  rows = [
    sweeps.Row("A", "dqn", 0, 1.0, 2.0, 1.0, ""),
    sweeps.Row("A", "dqn", 1, 3.0, 3.0, 1.0, ""),
    sweeps.Row("B", "mmdqn", 0, 5.0, 5.0, 1.0, ""),
  ]
  assert sweeps.table(rows) == [
    ["game", "dqn", "mmdqn"],
    ["A", "2.00", "-"],
    ["B", "-", "5.00"],
  ]
