"""`mmdrl cluster` on loopback, with a real Ray: what it refuses and leaves."""

import os
import pathlib
import socket
import subprocess
import sys

import listening
import pytest
import train_fixtures

from tf_mmdrl.cluster import connection, ray_processes
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benchmarks"))

import processes  # noqa: E402

pytestmark = pytest.mark.slow
_DAEMONS = ["gcs_server", "raylet, calls", "raylet, objects", "RuntimeEnv"]


def _free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


class _Shell:
  """Runs `mmdrl` with a token of its own."""

  def __init__(self, folder):
    self._folder = folder
    self.lines = []  # that the last command wrote to standard error

  def __call__(self, *words, token="token"):
    path = os.pathsep.join([str(pathlib.Path.cwd()), *sys.path])
    done = subprocess.run(
      [sys.executable, "-m", "tf_mmdrl", *map(str, words)],
      capture_output=True,
      text=True,
      env={
        **os.environ,
        "PYTHONPATH": path,
        "RAY_AUTH_TOKEN_PATH": str(self._folder / token),
      },
      timeout=600,
    )
    self.lines = done.stderr.strip().splitlines()
    return done.returncode, done.stdout, (self.lines or [""])[-1]


def _settings():
  small = train_fixtures.small("schedule.steps=320")
  base = dict(configs.fields(presets.get("quickstart").completed()))
  changed = [(n, v) for n, v in configs.fields(small) if base[n] != v]
  return [part for n, v in changed for part in ("--set", f"{n}={v}")]


def test_a_cluster_from_its_start_to_its_end(tmp_path):
  """Its token, its status, a run on it, and what is refused on the way."""
  mmdrl = _Shell(tmp_path)
  address = f"127.0.0.1:{_free_port()}"
  port = address.rpartition(":")[2]
  (tmp_path / "wrong").write_text("0" * 64)
  (tmp_path / "wrong").chmod(0o600)
  code, _, said = mmdrl("cluster", "join", address, token="wrong")
  assert (code, said.startswith("mmdrl: no cluster answers at")) == (2, True)
  try:
    code, shown, said = mmdrl("cluster", "start", "--port", port, "--cpus", 2)
    assert code == 0, said
    assert address in shown
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    code, _, said = mmdrl("cluster", "start", "--port", port)
    assert code == 2 and "part of the cluster" in said
    found = ray_processes.found(connection.cluster_place())
    # Some change their command line, by which others are found.
    found += [one for p in found for one in processes.descendants(p)]
    listening.require_as_documented(
      listening.sockets(found), "127.0.0.1", int(port), whole=_DAEMONS
    )
    code, _, said = mmdrl("cluster", "status", token="wrong")
    assert code == 2 and "does not know this token" in said
    assert mmdrl.lines == [said]  # and none of Ray's
    code, shown, _ = mmdrl("cluster", "status")
    assert code == 0 and "127.0.0.1" in shown and "alive  2 CPUs" in shown
    train = ["train", "--preset", "quickstart", *_settings(), "--cluster"]
    folder = ["--run-dir", tmp_path / "run"]
    code, _, said = mmdrl(*train, address, *folder, token="wrong")
    assert code == 2 and "token" in said and address in said
    code, _, said = mmdrl(*train, "127.0.0.1:1", *folder)
    assert code == 2 and "no part of the cluster at 127.0.0.1:1" in said
    code, shown, said = mmdrl(*train, address, "--actors", 2, *folder)
    assert code == 0 and "evaluation after 320 steps" in shown, said
  finally:
    code, shown, _ = mmdrl("cluster", "stop")
  assert code == 0 and shown != "ended 0 processes\n"
  code, shown, _ = mmdrl("cluster", "stop")
  assert (code, shown) == (0, "ended 0 processes\n")


_LOSE_RAYLET = """
import os, signal, sys, time
from tf_mmdrl.cluster import connection
with connection.local(1, object_store=100):
  found = os.popen(f"pgrep -x raylet -P {os.getpid()}").read().split()
  os.kill(int(found[0]), signal.SIGKILL)
  time.sleep(60)
"""


def test_the_death_of_rays_own_process_is_a_line():
  """Ray ended a learner with 1 and no word, or let it wait."""
  done = subprocess.run(
    [sys.executable, "-c", _LOSE_RAYLET],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])},
    timeout=600,
  )
  assert done.returncode == 75
  (said,) = done.stderr.splitlines()
  assert said.startswith(
    "mmdrl: Ray's process raylet on this machine has ended"
  )
