"""Two machines on one, by network and mount namespaces: the same bits.

Needs root and `ip netns`; skipped elsewhere.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tf_mmdrl.train import config

_BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(_BENCHMARKS))

import listening  # noqa: E402
import processes  # noqa: E402
import two_machines  # noqa: E402


def _why_not():
  """Why this machine cannot be two; empty if it can."""
  if os.geteuid():
    return "only root makes network namespaces"
  missing = [w for w in ("ip", "unshare", "nsenter") if not shutil.which(w)]
  if missing:
    return f"needs the commands {', '.join(missing)} (iproute2, util-linux)"
  name = f"mm{os.getpid()}-probe"
  tried = subprocess.run(["ip", "netns", "add", name], capture_output=True)
  if tried.returncode:
    return f"ip netns add: {tried.stderr.decode(errors='replace').strip()}"
  subprocess.run(["ip", "netns", "del", name], check=True)
  return ""


_REASON = _why_not()
pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(bool(_REASON), reason=_REASON or "it can"),
]


def test_two_machines_end_with_the_bits_of_two_threads(tmp_path):
  """And listen where docs/cluster.md says, while the run goes on."""
  seen = []

  def look(machines):
    for machine in machines:
      inside = processes.descendants(machine.holder)
      seen.append((machine.host, listening.sockets(inside)))

  assert two_machines.compare("MinAtar", 0, 800, tmp_path, look)
  daemons = ["raylet, calls", "raylet, objects", "RuntimeEnv"]
  workers = "learner, actors, runs"
  (first, head), (second, other) = seen
  whole = ["gcs_server", *daemons, workers]
  listening.require_as_documented(head, first, 6379, whole=whole)
  whole = [*daemons, workers]
  listening.require_as_documented(other, second, 6379, whole=whole)


def _wait_for(said, text, count, process):
  deadline = time.monotonic() + 240
  while said.read_text().count(text) < count:
    assert process.poll() is None, said.read_text()
    assert time.monotonic() < deadline, said.read_text()
    time.sleep(0.2)


def test_machines_come_and_go_in_free_order(tmp_path):
  """One is cut off from power, a third one takes over; all chunks count."""
  said, run = tmp_path / "said", tmp_path / "run"
  with two_machines.machines(tmp_path, 3) as (first, second, third):
    first.run("cluster", "start", "--host", first.host, "--cpus", "1")
    address = f"{first.host}:6379"
    second.run("cluster", "join", address, "--cpus", "1")
    words = two_machines.words("MinAtar", run, 10**7)
    words += ["--order", "free"]
    process = first.start(
      *words, "--cluster", address, "--actors", "2", log=said
    )
    _wait_for(said, "joins", 2, process)
    second.close()
    _wait_for(said, "was lost", 1, process)
    third.run("cluster", "join", address, "--cpus", "1")
    _wait_for(said, "joins", 3, process)
    # What enters the namespace waits for the command itself.
    os.kill(processes.descendants(process.pid)[0], signal.SIGTERM)
    assert process.wait() == 75
  header, *lines = (run / "chunks.csv").read_text().splitlines()
  assert header == "step,slot,steps,staleness,updates"
  rows = [list(map(int, line.split(","))) for line in lines]
  assert {row[1] for row in rows} == {0, 1}
  assert sum(row[2] for row in rows) == rows[-1][0]
  assert max(row[3] for row in rows) <= config.Config().system.staleness
