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


def _host(checkpoint):
  """The process that watches the run which is in this directory."""
  for path in pathlib.Path("/proc").glob("[0-9]*"):
    try:
      words = (path / "cmdline").read_bytes().split(b"\0")
      parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
      continue
    if b"train" in words and str(checkpoint).encode() in words:
      return int(path.name), int(parent)
  raise AssertionError("no such run")


def test_a_sweep_whose_host_is_killed_ends_with_the_same_table(
  ray_here, tmp_path, capfd
):
  from tf_mmdrl.cluster import run_host

  here = functools.partial(run_process.RunProcess, threads=1)
  wanted = _run(tmp_path / "here", here)
  there = functools.partial(run_host.ClusterProcess, cpus=1)
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
      process, host = _host(run)
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
  assert "seed0 lost its machine or process" in capfd.readouterr().err
