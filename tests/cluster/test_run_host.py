"""Runs of sweeps on Ray: the same table, also when a process is lost."""

import functools
import os
import pathlib
import signal
import time

import pytest
import train_fixtures

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets, run_process, sweeps

pytestmark = pytest.mark.slow


def _jobs(path):
  small = train_fixtures.small("schedule.steps=1600")
  base = dict(configs.fields(presets.get("quickstart").completed()))
  changed = [(n, v) for n, v in configs.fields(small) if base[n] != v]
  flags = [part for n, v in changed for part in ("--set", f"{n}={v}")]
  shared = ["--preset", "quickstart", *flags]
  return sweeps.plan(path, ["MinAtar/Breakout"], [0, 1], {"mmdqn": shared})


def _run(path, start, show=print):
  def begin(job):
    return start(job.arguments, job.directory, job.log)

  outcome = sweeps.run(_jobs(path), path, at_once=2, show=show, start=begin)
  assert outcome == (0, 0)
  rows = sweeps.finished(path)
  return sorted(row[:5] for row in rows), sweeps.table(rows)


def _host(mark):
  """The run of seed 0 with this in its command, and who watches it."""
  for path in pathlib.Path("/proc").glob("[0-9]*"):
    try:
      words = (path / "cmdline").read_bytes().split(b"\0")
      parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
      continue
    if b"train" not in words or b"--seed" not in words:
      continue
    is_first = words[words.index(b"--seed") + 1] == b"0"
    if is_first and any(mark.encode() in word for word in words):
      return int(path.name), int(parent)
  raise AssertionError("no such run")


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
  """The table of a sweep on this machine."""
  here = functools.partial(run_process.RunProcess, threads=1)
  return _run(tmp_path_factory.mktemp("here"), here)


@pytest.mark.parametrize("collect", [False, True])
def test_a_sweep_whose_host_is_killed_ends_with_the_same_table(
  ray_here, wanted, tmp_path, capfd, monkeypatch, collect
):
  """On a shared path, and on paths of the hosts' own that are fetched."""
  from tf_mmdrl.cluster import collected_run, run_host

  monkeypatch.setattr(collected_run, "PERIOD", 0.3)
  there = functools.partial(run_host.ClusterProcess, cpus=1, collect=collect)
  killed = []

  def kill_in_the_midst(line):
    if "begins" not in line or killed:
      return
    killed.append(line)

    def kill():
      run = tmp_path / "there" / "MinAtar-Breakout" / "mmdqn" / "seed0"
      deadline = time.monotonic() + 300
      while not list(run.glob("checkpoints/0*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
      process, host = _host("mmdrl-run-" if collect else str(run))
      os.kill(host, signal.SIGKILL)
      deadline = time.monotonic() + 10
      while pathlib.Path("/proc", str(process)).exists():
        assert time.monotonic() < deadline  # the run dies with its host
        time.sleep(0.05)
      killed.append(process)

    import threading

    threading.Thread(target=kill).start()

  assert _run(tmp_path / "there", there, kill_in_the_midst) == wanted
  assert len(killed) == 2
  said = capfd.readouterr().err
  assert "seed0 lost its machine or process" in said
  logs = list((tmp_path / "there").rglob("seed*.log"))
  texts = "".join(log.read_text() for log in logs)
  assert len(logs) == 2 and "goes on at step" in texts
