"""Searches: what is tried, what is stopped early, what a kill leaves."""

import functools
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import short_run
import train_fixtures

from tf_mmdrl.cluster import search, search_figure, search_lock, search_space
from tf_mmdrl.core import errors

_HERE = pathlib.Path(__file__).parent
_SEARCH = search_space.Search(
  "optimizer.learning_rate", bounds=(1e-6, 1e-1), is_log=True
)


class _Process:
  """As `RunProcess`, of the short run."""

  def __init__(self, arguments, directory, log):
    directory.parent.mkdir(parents=True, exist_ok=True)
    self._process = subprocess.Popen(
      [
        *(sys.executable, _HERE / "short_run.py", *arguments),
        *("--run-dir", directory),
      ],
      stdout=log.open("a"),
    )

  def wait(self, seconds=None):
    try:
      return self._process.wait(seconds)
    except subprocess.TimeoutExpired:
      return None

  def stop(self):
    self._process.terminate()


def _plan(path, trials=16):
  steps = short_run.EVALUATIONS * short_run.STEPS
  return search.Plan(path, [], [_SEARCH], [0, 1], trials, steps)


def _run(plan, show=lambda line: None):
  return search.run(plan, at_once=2, start=_Process, show=show)


def _rate(trial):
  return float(trial.settings[0].partition("=")[2])


def test_a_search_finds_what_is_best_and_stops_what_is_not(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(search, "_LOOK", 0.02)
  plan = _plan(tmp_path)
  assert _run(plan)
  found = search.trials(plan)
  assert [trial.number for trial in found] == list(range(16))
  ends = [trial.state for trial in found]
  assert ends.count("pruned") >= 4 and "running" not in ends
  assert 1e-4 < _rate(search.best(found)) < 1e-2
  for trial in found:
    assert (trial.state == "failed") == (_rate(trial) > 0.05)
    if trial.state == "complete":
      assert trial.steps == 2 * plan.steps
      # The mean of evaluations 6 to 10, over both seeds.
      near = abs(math.log10(_rate(trial)) + 3)
      assert trial.value == pytest.approx(8 - 2 * near + 0.005, abs=1e-6)
  done = [t for t in found if t.state in ("complete", "pruned")]
  steps = sum(trial.steps for trial in done)
  assert search.saved(plan, found) == 1 - steps / (len(done) * 2 * plan.steps)
  shares = search_figure.importances(search.open_study(plan))
  search_figure.draw(found, shares, tmp_path / "search.png")
  assert (tmp_path / "search.png").stat().st_size > 5000


def test_after_a_kill_no_trial_is_lost_or_run_twice(tmp_path):
  """Killed twice in the midst of trials, runs go on where they were cut."""
  cut = _plan(tmp_path / "cut", trials=6)
  code = (
    "import test_search, pathlib, sys;"
    "test_search._run(test_search._plan(pathlib.Path(sys.argv[1]), 6))"
  )
  path = os.pathsep.join([str(_HERE), str(_HERE.parent / "train"), *sys.path])
  for _ in range(2):
    process = subprocess.Popen(
      [sys.executable, "-c", code, tmp_path / "cut"],
      env={**os.environ, "PYTHONPATH": path},
      start_new_session=True,
    )
    before = set((tmp_path / "cut").glob("trial*/seed*/evaluated"))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
      if set((tmp_path / "cut").glob("trial*/seed*/evaluated")) - before:
        break
      time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
  assert _run(cut)
  found = search.trials(cut)
  assert len(found) == 6 and all(t.state != "running" for t in found)
  for trial in found:
    if trial.state == "complete":
      for seed in (0, 1):
        log = tmp_path / "cut" / f"trial{trial.number:04d}" / f"seed{seed}"
        lines = (log / "evaluated").read_text().splitlines()
        done = [int(line.split()[0]) for line in lines]
        assert done == list(range(short_run.EVALUATIONS))


def test_a_search_is_gone_on_with_as_it_was_begun(tmp_path):
  plan = _plan(tmp_path, trials=1)
  assert _run(plan)
  shown = []
  assert _run(plan, shown.append) and not shown
  with pytest.raises(errors.UserError, match="other seeds.*0, 1.*2"):
    search.open_study(plan._replace(seeds=[2]))


def test_a_run_that_was_stopped_goes_on_next_time(tmp_path):
  """A trial whose run somebody stops is neither failed nor over."""
  plan = _plan(tmp_path, trials=2)
  told = []

  def stop_the_first(*arguments):
    process = _Process(*arguments)
    if not told:
      process.stop()
      told.append(process)
    return process

  shown = []
  show = shown.append
  assert not search.run(plan, at_once=1, start=stop_the_first, show=show)
  assert "trial 0: stopped" in shown
  first, second = (trial.state for trial in search.trials(plan))
  assert first == "running" and second != "running"
  assert _run(plan)
  ends = [trial.state for trial in search.trials(plan)]
  assert len(ends) == 2 and "running" not in ends


def test_two_searches_do_not_share_a_directory(tmp_path):
  plan = _plan(tmp_path / "new", trials=1)
  with (
    search_lock.alone(plan.directory),
    pytest.raises(
      errors.UserError, match="another search or sweep goes on in.*new"
    ),
  ):
    _run(plan)
  assert not list(plan.directory.glob("search.db*"))
  assert _run(plan)  # once the other one is over


def test_a_directory_that_cannot_be_written(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(errors.UserError, match="cannot write to.*Not a dir"):
    _run(_plan(tmp_path / "file" / "new", trials=1))


@pytest.mark.parametrize("content", [b"no database", b"\xff" * 8192])
def test_a_damaged_storage_is_said(tmp_path, content):
  (tmp_path / "search.db").write_bytes(content)
  with pytest.raises(errors.UserError, match="search.db.*cannot be read or"):
    search.open_study(_plan(tmp_path))


@functools.cache
def _config():
  return train_fixtures.small()


@pytest.mark.parametrize(
  "text, wanted",
  [
    (
      "optimizer.learning_rate=1e-5..1e-3:log",
      dict(bounds=(1e-5, 1e-3), is_log=True),
    ),
    ("agent.n_step=1..5", dict(bounds=(1, 5), is_whole=True)),
    ("network.dueling=true,false", dict(choices=("true", "false"))),
    (
      "agent.kernel=gaussian_mixture:1..10,smooth_energy:1",
      dict(choices=("gaussian_mixture:1..10", "smooth_energy:1")),
    ),
  ],
)
def test_searches_are_read(text, wanted):
  name = text.partition("=")[0]
  assert search_space.parse([text], _config()) == [
    search_space.Search(name, **wanted)
  ]


@pytest.mark.parametrize(
  "texts, message",
  [
    ([], "needs --search"),
    (["optimizer.learning_rat=1..2"], "did you mean.*learning_rate"),
    (["optimizer.learning_rate"], "is written GROUP.FIELD"),
    (["optimizer.learning_rate=1e-3..1e-5"], "LOW below HIGH"),
    (["optimizer.learning_rate=0..1:log"], "only if LOW is above 0"),
    (["optimizer.learning_rate=1e-5..1:lin"], "only if LOW is above 0"),
    (["optimizer.learning_rate=-1..1"], "learning_rate must be above 0"),
    (["agent.n_step=1..2.5"], "n_step must be a whole number, got '2.5'"),
    (["network.dueling=0..1"], "has no range"),
    (["network.dueling=true"], "two or more values"),
    (["network.dueling=true,perhaps"], "dueling"),
    (["agent.kernel=smooth_energy:1,smoth"], "did you mean 'smooth_energy'"),
    (["agent.n_step=1..2", "agent.n_step=1,3"], "n_step twice"),
  ],
)
def test_what_cannot_be_searched_is_said(texts, message):
  with pytest.raises(errors.UserError, match=message):
    search_space.parse(texts, _config())
