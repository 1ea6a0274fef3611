"""The benchmark of faults: what it counts, and a short form of all of it."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

_BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(_BENCHMARKS))

import attacked  # noqa: E402
import cut_runs  # noqa: E402
import damaged_runs  # noqa: E402
import full_disks  # noqa: E402
import pieces  # noqa: E402


def _outcome(code=0, shown="", errors=""):
  return attacked.Outcome(code, shown, errors)


_WHOLE = _outcome(shown="checkpoint 320: whole\nstep: 320\n")


@pytest.mark.parametrize(
  "command, done, wanted",
  [
    ("inspect", _WHOLE, "same"),
    ("train", _outcome(2, errors="mmdrl: the file is cut\n"), "said"),
    ("train", _outcome(2, errors="mmdrl: a note\nIndexError\n"), "silent"),
    ("train", _outcome(2), "silent"),
    ("train", _outcome(1, errors="Traceback (most recent"), "traceback"),
    ("train", _outcome(-signal.SIGSEGV), "traceback"),
    ("train", _outcome(-signal.SIGKILL), "silent"),
    ("train", _outcome(errors="mmdrl: warning: passed over\n"), "said"),
    ("report", _outcome(shown="step: 160\n"), "silent"),
    ("inspect", _outcome(shown="checkpoint 320: whole\nstep: 1\n"), "silent"),
    ("inspect", _outcome(shown="checkpoint 320: a.index is cut\n"), "said"),
    ("report", _outcome(shown="checkpoint 320: a.index is cut\n"), "silent"),
  ],
)
def test_what_a_command_made_of_a_damage(command, done, wanted):
  assert damaged_runs.verdict(command, done, _WHOLE) == wanted


@pytest.mark.parametrize(
  "errors, began, wanted",
  [
    ("mmdrl: goes on at step 1,536 of 2,048\n", True, True),
    ("mmdrl: the run is finished: it is at step 1,600 of 2\n", True, True),
    ("mmdrl: goes on at step 1,472 of 2,048\n", True, False),
    ("", True, False),  # it began anew, and would end alike
    ("", False, True),  # killed before it said anything
  ],
)
def test_a_run_that_begins_anew_is_lost(tmp_path, errors, began, wanted):
  run = object.__new__(cut_runs._CutRun)
  run.path, run._reached = tmp_path, 0
  (tmp_path / "checkpoints" / "000000001536").mkdir(parents=True)
  run.look()
  assert run.went_on(_outcome(errors=errors), began=began) == wanted
  (tmp_path / "checkpoints" / "000000001536").rmdir()
  assert not run.went_on(_outcome(errors=errors), began=began)


def test_a_line_that_is_always_said_does_not_count():
  usual = _outcome(shown="score 1\n", errors="mmdrl: the run is finished\n")
  changed = usual._replace(shown="score 2\n")
  assert damaged_runs.verdict("train", changed, usual) == "silent"


def test_every_kind_of_file_is_damaged_once(tmp_path):
  replay = [f"replay/steps-{n:012d}-{'ab' * 6}.arrays" for n in range(5)]
  replay.append(f"replay/tables-{4:012d}-{'cd' * 6}.arrays")
  for name in ["config.json", "1/agent", "2/agent", *replay]:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x")
  found = {str(name) for name in damaged_runs.kinds(tmp_path)}
  alike = {replay[0], replay[4]}
  assert found == {"config.json", "1/agent", "2/agent", replay[5], *alike}


def test_damages_are_spread_over_all():
  assert damaged_runs.spread("abcdefgh", 4) == ["a", "c", "e", "g"]
  assert damaged_runs.spread("abc", 9) == ["a", "b", "c"]


def test_a_command_is_a_process_that_can_be_watched_and_killed(tmp_path):
  log = tmp_path / "log"
  refused = attacked.run(["inspect", str(tmp_path / "nowhere")], log)
  assert refused.refused and not refused.traceback

  def fail():
    raise KeyError("prepare")

  assert attacked.run([], log, prepare=fail).traceback
  asleep = attacked.Command([], log, lambda: time.sleep(100))
  asleep.send(signal.SIGKILL)
  assert asleep.end().code == -signal.SIGKILL


def test_phases_are_seen_from_another_process():
  marks = attacked.Marks()
  play = marks._marked(lambda: marks.now(), "playing")
  assert marks.now() == [] and play() == ["playing"]
  child = os.fork()
  if child == 0:
    play()
    os._exit(0)
  os.waitpid(child, 0)
  assert marks.count("playing") == 2 and marks.count("learning") == 0


def test_writes_below_a_place_are_seen(tmp_path):
  place, log = tmp_path / "run", tmp_path / "log"

  def prepare():
    full_disks.on_write(place, lambda name: print("writes", name))
    place.mkdir()
    (place / "a").write_text("x")
    (place / "a").read_text()
    (tmp_path / "b").write_text("x")
    os.rename(place / "a", place / "c")

  shown = attacked.run(["presets"], log, prepare=prepare).shown
  writes = [line for line in shown.splitlines() if line.startswith("writes")]
  assert writes == ["writes .", "writes a", "writes a"]


def _three(known):
  for name in "abc":
    if name not in known:
      yield name, {"number": len(known)}


def test_what_is_done_is_kept_and_not_done_again(tmp_path):
  path = tmp_path / "done"
  journal = pieces.Journal(path, {"commit": "x"})
  known = journal.known("kills")
  # No time at all: nothing is begun.
  assert not pieces.work(journal, "kills", _three(known), known, -1.0)
  journal.add("kills", "a", {"number": 7}, seconds=1.0, load=2.0)
  path.write_text(path.read_text() + '{"part": "kills", "na')  # it was cut
  journal = pieces.Journal(path, {"commit": "x"})
  known = journal.known("kills")
  end = time.monotonic() + 100
  assert pieces.work(journal, "kills", _three(known), known, end)
  assert pieces.Journal(path, {"commit": "x"}).known("kills") == {
    "a": {"number": 7},
    "b": {"number": 1},
    "c": {"number": 2},
  }
  assert [set(m) for m in journal.measured("kills")] == [
    {"seconds", "load"}
  ] * 3
  assert journal.known("damages") == {}
  # Another commit's is another's.
  assert pieces.Journal(path, {"commit": "y"}).known("kills") == {}


def test_turns_are_counted_together():
  known = {
    "CartPole": "a fingerprint",
    "0 CartPole": dict(
      hits=8,
      lost=0,
      silent=1,
      tracebacks=0,
      slowest=2.0,
      phases={"playing": 8},
      names={"CartPole": 8},
    ),
    "1 CartPole": dict(
      hits=2,
      lost=1,
      silent=0,
      tracebacks=3,
      slowest=1.0,
      phases={"playing": 1, "learning": 1},
      names={"CartPole": 2},
    ),
  }
  row = cut_runs.row(known, was_killed=True)
  assert row[1:5] == (10, 1, 1, 3)
  assert "learning 1, playing 9" in row.note and "CartPole: 10" in row.note


@pytest.mark.slow
def test_nothing_is_lost_silent_or_a_traceback_in_runs():
  parts = ["kills", "damages", "sigterm", "environments"]
  if os.geteuid() == 0:
    parts.append("disk")
  done = subprocess.run(
    [sys.executable, "faults.py", "--quick", "--only", ",".join(parts)],
    capture_output=True,
    text=True,
    cwd=_BENCHMARKS,
    env={**os.environ, "PYTHONPATH": str(_BENCHMARKS.parent)},
  )
  assert done.returncode == 0, done.stdout + done.stderr
  assert "runs killed" in done.stdout
