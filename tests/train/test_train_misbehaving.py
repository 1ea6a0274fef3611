"""Runs in environments that misbehave: one line each, and nothing is lost."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from concurrent import futures

import misbehaving  # noqa: F401  (registers environments)
import pytest
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors, exit_codes
from tf_mmdrl.environments import checked
from tf_mmdrl.evaluation.evaluator import Evaluation
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import metrics as metrics_file
from tf_mmdrl.train import run_directory, runs, stopping, trainer

_TESTS = pathlib.Path(__file__).parents[1]


def _config(fault, *changes):
  return train_fixtures.small(
    f"environment.name=Misbehaving_{fault}-v0",
    "environment.max_episode_steps=0",
    "schedule.learning_starts=100000",  # nothing is learnt, so it is quick
    *changes,
  )


@pytest.mark.parametrize(
  "fault, message",
  [
    ("raises", r"raised RuntimeError \(the simulator\) in step, at step \d+;"),
    ("text_reward", r"reward must be a number, it is '5', at step \d+;"),
  ],
)
def test_a_fault_is_one_line_and_the_last_checkpoint_stays(
  tmp_path, fault, message
):
  config = _config(fault, "system.checkpoint_period=16")
  with pytest.raises(errors.UserError, match=message) as raised:
    trainer.train(config, run_directory.RunDirectory(tmp_path))
  assert "\n" not in str(raised.value)
  with runs.restored(tmp_path) as state:
    assert 100 < state.step < 200  # of 4 environments, 40 each and resets
    assert str(raised.value).endswith(
      f"; the same command goes on at the checkpoint of step {state.step}"
    )


@pytest.mark.parametrize(
  "name, said",
  [
    ("misbehaving:Clock-v0", 1),
    ("CartPole-v1", 0),
    ("MinAtar/Breakout", 0),
  ],
)
def test_training_says_what_no_seed_decides_where_it_is_asked(
  tmp_path, capfd, monkeypatch, name, said
):
  monkeypatch.setattr(trainer, "configure_process", lambda config: None)
  config = _config("raises", "schedule.steps=16", "evaluation.episodes=1")
  settings = [f"{n}={v}" for n, v in configs.fields(config)]
  flags = [flag for text in settings for flag in ("--set", text)]
  flags += ["--set", f"environment.name={name}"]
  assert main.main(["train", "--run-dir", str(tmp_path / "run"), *flags]) == 0
  shown = capfd.readouterr().err
  assert shown.count("which no seed decides") == said
  assert shown.count("asks time.monotonic (misbehaving.py:") == said


def test_games_without_an_end_are_cut_and_huge_scores_are_not_enough(
  tmp_path, capfd
):
  config = _config(
    "endless_huge",
    "evaluation.max_episode_steps=60",
    "evaluation.period=160",
    "evaluation.enough=100",
    "schedule.steps=320",
  )
  directory = run_directory.RunDirectory(tmp_path)
  outcome = trainer.train(config, directory)
  assert outcome.finished and outcome.step == 320
  rows = directory.rows()
  scores = [row["evaluation_score"] for row in rows]
  assert [score > 1e9 for score in scores if score is not None] == [True] * 2
  shown = capfd.readouterr().err
  assert "games of the evaluation at step 160 had not ended after 60" in shown
  assert "which is not below 1e+09: it does not count" in shown


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_not_the_best(tmp_path, bad):
  metrics = metrics_file.Metrics(tmp_path / "metrics.csv", "chain")
  for step, score in ((1, bad), (2, 3.0), (3, bad)):
    metrics.add_row(
      step=step,
      updates=1,
      epsilon=0.5,
      replay_steps=7,
      evaluation=Evaluation([score], [1]),
      unit=1.0,
      beyond_reach=0.0,
    )
  assert (metrics.best_score, metrics.best_step) == (3.0, 2)


def _ends_with(act, number=signal.SIGTERM, before=lambda: None):
  """The exit code of a child that does `act` and is asked to stop.

  Args:
    act: what the child does; it gets the `Stop`.
    number: of the signal.
    before: what it does first.
  """
  child = os.fork()
  if child == 0:
    stopping._PATIENCE, stopping._LOOK = 0.2, 0.05
    try:
      before()
      with stopping.Stop() as stop:
        threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
        act(stop)
    finally:
      os._exit(1)
  for _ in range(200):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
      return os.waitstatus_to_exitcode(status)
    time.sleep(0.05)
  os.kill(child, signal.SIGKILL)
  os.waitpid(child, 0)
  return pytest.fail("it did not end")


def _hang():
  checked.calling(time.sleep, 100)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_whose_environment_hangs_ends_when_it_is_asked_to(capfd, number):
  def main_thread(stop):
    _hang()

  def other_thread(stop):
    threading.Thread(target=_hang, daemon=True).start()
    threading.Event().wait()

  for act in (main_thread, other_thread):
    assert _ends_with(act, number) == exit_codes.STOPPED
    shown = capfd.readouterr().err.strip().splitlines()
    assert shown[0].startswith("stopping with a checkpoint")
    assert "has not answered" in shown[-1]
    assert "ends without a new checkpoint; run it again" in shown[-1]


def test_ctrl_c_again_does_not_wait_for_an_environment_that_hangs(capfd):
  """The thread that plays cannot be ended, so its run must be."""

  def play(stop):
    pool = futures.ThreadPoolExecutor(1)
    playing = pool.submit(_hang)
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
      playing.result()
    finally:
      pool.shutdown()

  assert _ends_with(play, signal.SIGINT) == exit_codes.STOPPED
  assert "has not answered" in capfd.readouterr().err


def test_a_run_whose_evaluation_hangs_is_saved_first(tmp_path, capfd):
  def evaluation(stop):
    with stop.saving_if_stuck((tmp_path / "saved").touch):
      _hang()

  assert _ends_with(evaluation) == exit_codes.STOPPED
  assert (tmp_path / "saved").exists()
  assert "ends with a new checkpoint" in capfd.readouterr().err


def _hold_the_lock():
  """As C code that hangs: no Python of this process runs any more."""
  mutex = ctypes.create_string_buffer(256)
  lock = ctypes.PyDLL(None).pthread_mutex_lock  # PyDLL keeps Python's lock
  lock(mutex)
  lock(mutex)


@pytest.mark.parametrize(
  "asked_before, number",
  [(False, signal.SIGTERM), (True, signal.SIGTERM), (False, signal.SIGINT)],
)
def test_a_run_whose_environment_holds_pythons_lock_is_killed(
  capfd, tmp_path, asked_before, number
):
  """Also if Ctrl-C is pressed again and again, as people do who wait."""
  if asked_before:
    for name in ("000000000160", "000000000320", ".tmp-000000000480"):
      (tmp_path / name).mkdir()
  reading, writing = os.pipe()
  child = os.fork()
  if child == 0:
    stopping._UNHEARD, stopping._LOOK = 1.0, 0.05
    with stopping.Stop(checkpoints=tmp_path) as stop:
      os.write(writing, b"r")
      while asked_before and not stop.asked:
        time.sleep(0.01)
      time.sleep(0.2)  # what was asked is heard
      os.write(writing, b"h")
      _hold_the_lock()
    os._exit(1)
  try:
    assert os.read(reading, 1) == b"r"
    if not asked_before:
      assert os.read(reading, 1) == b"h"
      time.sleep(0.1)
    os.kill(child, number)
    began = time.monotonic()
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
      assert time.monotonic() - began < 20, "it did not end"
      if number == signal.SIGINT:
        os.kill(child, number)
      time.sleep(0.05)
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
  assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
  assert time.monotonic() - began > 1.0
  left = "there is no checkpoint yet"
  if asked_before:
    left = "the same command goes on at the checkpoint of step 320"
  said = capfd.readouterr().err
  assert f"holds Python's lock. It is killed; {left}" in said


def test_a_run_that_is_over_leaves_no_process():
  with stopping.Stop() as stop:
    process = stop._watchdog
    assert process.poll() is None
  assert process.returncode is not None


def test_long_waits_that_add_up_are_too_much():
  """Of an actor elsewhere, say, and then of the learner that plays for it."""

  def one_after_another(stop):
    stopping._PATIENCE, stopping._LATEST = 2.0, 1.5
    while True:
      checked.calling(time.sleep, 1.3)

  assert _ends_with(one_after_another) == exit_codes.STOPPED


def _compute(stop):
  time.sleep(1.0)
  os._exit(7 if stop.asked else 8)


def test_a_run_that_only_computes_is_waited_for():
  assert _ends_with(_compute) == 7


def _lose_standard_error():
  """As if `mmdrl train 2>&1 | tee log` had got Ctrl-C, which ends tee, too."""
  reading, writing = os.pipe()
  os.close(reading)
  os.dup2(writing, 2)
  sys.stderr = os.fdopen(2, "w", closefd=False)


def test_a_run_that_nobody_listens_to_stops_as_any_other():
  for number in (signal.SIGINT, signal.SIGTERM):
    assert _ends_with(_compute, number, _lose_standard_error) == 7
  hung = _ends_with(lambda _: _hang(), signal.SIGTERM, _lose_standard_error)
  assert hung == exit_codes.STOPPED


def test_who_hangs_up_asks_to_stop_unless_it_is_to_be_ignored():
  def ignore():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

  def heed():  # these tests may run under nohup themselves
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

  assert _ends_with(_compute, signal.SIGHUP, heed) == 7
  assert _ends_with(_compute, signal.SIGHUP, ignore) == 8


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_hanging_run_within_30_s_at_its_checkpoint(
  tmp_path, number
):
  path = tmp_path / "run"
  config = _config("hangs", "system.checkpoint_period=16")
  settings = [f"{n}={v}" for n, v in configs.fields(config)]
  flags = [flag for text in settings for flag in ("--set", text)]
  name = "environment.name=misbehaving:Misbehaving_hangs-v0"
  command = [sys.executable, "-m", "tf_mmdrl", "train", "--run-dir", str(path)]
  process = subprocess.Popen(
    [*command, *flags, "--set", name],
    stderr=subprocess.PIPE,
    text=True,
    env={**os.environ, "PYTHONPATH": f"{_TESTS}:{_TESTS.parent}"},
  )
  while not any(path.glob("checkpoints/0*")):
    assert process.poll() is None
    time.sleep(0.1)
  time.sleep(5)  # it hangs by now
  process.send_signal(number)
  began = time.monotonic()
  said = ""
  with contextlib.suppress(subprocess.TimeoutExpired):
    _, said = process.communicate(timeout=60)
  assert process.returncode == exit_codes.STOPPED
  assert time.monotonic() - began < 30
  assert "the environment has not answered for" in said
  with runs.restored(path, ["misbehaving"]) as state:
    assert state.step > 100
