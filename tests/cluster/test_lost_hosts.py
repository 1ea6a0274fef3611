"""What becomes of a run whose host is lost, out of reach, or has no room.

Ray's part is a script here: no real one is out of reach when a test wants it.
"""

import argparse
import contextlib
import types

import pytest
from ray import exceptions

from tf_mmdrl.cli import sweep_command
from tf_mmdrl.cluster import connection, run_host
from tf_mmdrl.core import errors, exit_codes

_HELLO = "hello"  # what a host answers once it is there
_AWAY = exceptions.ActorUnavailableError("away", None)


class _Ray:
  """Answers calls of `run` by a list, and writes down what it is told."""

  def __init__(self, *answers):
    self.answers = list(answers)
    self.told = []
    self.is_full = False  # has no room for a host

  def remote(self, kind):
    hosts = iter("abcdefghijklmnop")

    def note(host, what):
      return types.SimpleNamespace(
        remote=lambda *_: self.told.append(f"{what} {host}")
      )

    def host():
      name = next(hosts)
      calls = {what: note(name, what) for what in ("run", "stop")}
      calls["hello"] = types.SimpleNamespace(remote=lambda: _HELLO)
      return types.SimpleNamespace(name=name, **calls)

    kind = types.SimpleNamespace(remote=host)
    return types.SimpleNamespace(options=lambda **_: kind)

  def wait(self, references, timeout):
    return ([], references) if self.is_full else (references, [])

  def get(self, reference):
    answer = self.answers.pop(0)
    if isinstance(answer, Exception):
      raise answer
    return answer

  def kill(self, host):
    self.told.append(f"kill {host.name}")


def _run(monkeypatch, path, *answers):
  ray = _Ray(*answers)
  monkeypatch.setattr(run_host, "ray", ray)
  monkeypatch.setattr(run_host, "_ASK", 0.01)
  process = run_host.ClusterProcess([], path / "run", path / "log", cpus=1)
  return process, ray.told


def test_a_lost_host_is_killed_before_another_begins(monkeypatch, tmp_path):
  lost = exceptions.ActorDiedError()
  process, told = _run(monkeypatch, tmp_path, lost, 0)
  assert process.wait() == 0
  assert told == ["run a", "kill a", "run b", "kill b"]


def test_a_host_out_of_reach_is_asked_again(monkeypatch, tmp_path):
  process, told = _run(monkeypatch, tmp_path, _AWAY, _AWAY, 0)
  assert process.wait() == 0
  assert told == ["run a", "run a", "run a", "kill a"]


class _Time:
  """A clock that only sleep moves."""

  now = 1000.0

  def monotonic(self):
    return self.now

  def sleep(self, seconds):
    self.now += 25


def test_a_host_out_of_reach_for_long_is_left(monkeypatch, tmp_path):
  monkeypatch.setattr(run_host, "time", _Time())
  process, told = _run(monkeypatch, tmp_path, *4 * [_AWAY], _AWAY, 0)
  assert process.wait() == 0  # the fourth time, after 75 s; anew with the next
  left = [*4 * ["run a"], "kill a"]
  assert told == [*left, "run b", "run b", "kill b"]


def test_a_stop_is_not_forgotten_with_its_host(monkeypatch, tmp_path):
  lost = exceptions.ActorDiedError()
  process, told = _run(monkeypatch, tmp_path, _AWAY, lost)
  process.stop()
  assert process.wait() == exit_codes.STOPPED
  assert told == ["run a", "stop a", "run a", "stop a", "kill a"]


def test_a_run_that_waits_for_room_stops_at_once(monkeypatch, tmp_path):
  """Otherwise Ctrl-C would wait for room, too, perhaps for ever."""
  process, told = _run(monkeypatch, tmp_path)
  run_host.ray.is_full = True
  assert process.wait(0) is None
  process.stop()
  assert process.wait() == exit_codes.STOPPED
  assert told == ["run a", "kill a"]


def test_a_host_has_one_run_and_stops_it_once(monkeypatch):
  told = []

  class Run:
    def __init__(self, *_, **__):
      told.append("starts")

    def stop(self):
      told.append("stops")

    def wait(self):
      return 7

  monkeypatch.setattr(run_host.run_process, "RunProcess", Run)
  host = run_host.RunHost()
  assert [host.run([], "run", "log", 1) for _ in range(2)] == [7, 7]
  host.stop()
  host.stop()
  assert told == ["starts", "stops"]


def _node(alive, cpus, **more):
  return {"Alive": alive, "Resources": {"CPU": cpus, **more}}


@pytest.mark.parametrize(
  "cpus, gpus, fits",
  [(4, 0, True), (2, 1, True), (5, 0, False), (3, 1, False), (1, 2, False)],
)
def test_what_no_machine_holds_is_refused(monkeypatch, cpus, gpus, fits):
  """A run is on one machine; that which has left does not count."""
  nodes = [_node(True, 4.0), _node(True, 2.0, GPU=1.0), _node(False, 64.0)]
  ray = types.SimpleNamespace(
    nodes=lambda: nodes, cluster_resources=lambda: {"CPU": 6.0}
  )
  monkeypatch.setattr(run_host, "ray", ray)
  monkeypatch.setattr(connection, "require", lambda address: None)
  here = lambda address: contextlib.nullcontext()  # noqa: E731
  monkeypatch.setattr(connection, "cluster", here)
  args = argparse.Namespace(
    cluster="a:1", jobs=None, cpus=cpus, gpus=gpus, collect=False
  )
  wanted = contextlib.nullcontext()
  if not fits:
    said = f"--cpus {cpus} --gpus {gpus} of one machine.*pass less"
    wanted = pytest.raises(errors.UserError, match=said)
  with wanted, sweep_command.places(args) as (at_once, _):
    assert at_once == 6 // cpus
