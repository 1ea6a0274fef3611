"""What becomes of a run whose host is lost, out of reach, or has no room.

Ray's part is a script here: no real one is out of reach when a test wants it.
"""

import argparse
import concurrent.futures
import contextlib
import threading
import time
import types

import pytest
from ray import exceptions

from tf_mmdrl.cli import sweep_command
from tf_mmdrl.cluster import connection, run_host, waiting
from tf_mmdrl.core import errors, exit_codes
from tf_mmdrl.train import sweeps, versions

_HELLO = "hello"  # to a host, which answers once it is there
_RUN = "run"
_AWAY = exceptions.ActorUnavailableError("away", None)


class _Ray:
  """Answers calls of `run` by a list, and writes down what it is told."""

  def __init__(self, *answers):
    self.answers = list(answers)
    self.told = []
    self.late = []  # kinds of calls that nobody answers
    self.who = {"host": "far", "process": 7, "versions": versions.found()}
    self.rooms = [_node(True, 1.0)]

  def remote(self, kind):
    hosts = iter("abcdefghijklmnop")

    def note(host, what):
      return types.SimpleNamespace(
        remote=lambda *_: self.told.append(f"{what} {host}") or what
      )

    def host():
      name = next(hosts)
      calls = {what: note(name, what) for what in ("run", "stop")}
      calls["hello"] = types.SimpleNamespace(remote=lambda: _HELLO)
      return types.SimpleNamespace(name=name, **calls)

    kind = types.SimpleNamespace(remote=host)
    return types.SimpleNamespace(options=lambda **_: kind)

  def wait(self, references, timeout):
    return ([], references) if references[0] in self.late else (references, [])

  def nodes(self):
    return self.rooms

  def get(self, reference):
    if reference == _HELLO:
      return self.who
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
  assert told == ["stop a", "run a", "run a", "stop a", "kill a"]


def test_a_run_that_waits_for_room_stops_at_once(monkeypatch, tmp_path):
  """Otherwise Ctrl-C would wait for room, too, perhaps for ever."""
  process, told = _run(monkeypatch, tmp_path)
  run_host.ray.late = [_HELLO]
  assert process.wait(0) is None
  process.stop()
  assert process.wait() == exit_codes.STOPPED
  assert told == ["kill a"]


def _patience(monkeypatch, tell, give_up):
  patience = waiting.Patience(tell=tell, give_up=give_up)
  monkeypatch.setattr(run_host, "Clock", lambda: waiting.Clock(patience))
  monkeypatch.setattr(run_host, "_LOOK", 0.01)


def test_a_run_without_a_machine_says_so_and_stops(
  monkeypatch, tmp_path, capfd
):
  """It waited for ever, without a word."""
  _patience(monkeypatch, tell=0.02, give_up=0.1)
  process, told = _run(monkeypatch, tmp_path)
  run_host.ray.late, run_host.ray.rooms = [_HELLO], [_node(False, 1.0)]
  monkeypatch.setattr(run_host.ray, "wait", _slowly(run_host.ray.wait))
  assert process.wait() == exit_codes.STOPPED
  assert told == ["kill a"]
  said = capfd.readouterr().err
  assert "s for a machine with room (--cpus 1 --gpus 0), for run" in said
  assert "and stops; the same command goes on with it" in said


def test_a_run_waits_for_others_as_long_as_they_take(
  monkeypatch, tmp_path, capfd
):
  """The machine is there, and full."""
  _patience(monkeypatch, tell=0.02, give_up=0.05)
  process, told = _run(monkeypatch, tmp_path)
  run_host.ray.late = [_HELLO]
  monkeypatch.setattr(run_host.ray, "wait", _slowly(run_host.ray.wait))
  assert process.wait(0.3) is None
  assert not told and capfd.readouterr().err.count("has waited") > 1


def test_a_silent_host_is_named_and_left(monkeypatch, tmp_path, capfd):
  """It is there for Ray, and does not answer: suspended, say."""
  _patience(monkeypatch, tell=0.02, give_up=0.1)
  monkeypatch.setattr(run_host, "_PING", 0.0)
  process, told = _run(monkeypatch, tmp_path, 0)
  ray = run_host.ray
  wait = _slowly(ray.wait)

  def waits(references, timeout):
    is_silent = "run a" in told and "kill a" not in told
    ray.late = [_RUN, _HELLO] if is_silent else []
    return wait(references, timeout)

  monkeypatch.setattr(ray, "wait", waits)
  assert process.wait() == 0
  assert told == ["run a", "kill a", "run b", "kill b"]
  said = capfd.readouterr().err
  assert "s for an answer of process 7 on far, for run" in said


def _slowly(wait):
  """As a real wait: it takes its time."""

  def waits(references, timeout):
    time.sleep(min(timeout, 0.01))
    return wait(references, timeout)

  return waits


@pytest.mark.parametrize(
  "who, said",
  [
    (
      {
        "host": "far",
        "process": 7,
        "versions": {**versions.found(), "numpy": "1.0"},
      },
      "far has others than this machine: numpy: .* -> 1.0; install the same",
    ),
    (
      {"host": "far", "versions": {**versions.found(), "python": "3.12.1"}},
      "far has others than this machine: python: .* -> 3.12.1",
    ),
    (None, "others than this machine: tf-mmdrl: .* -> not installed"),
  ],
)
def test_a_host_of_other_versions_is_refused(monkeypatch, tmp_path, who, said):
  process, told = _run(monkeypatch, tmp_path)
  run_host.ray.who = who
  with pytest.raises(errors.UserError, match=said):
    process.wait()
  assert told == ["kill a"]


class _UnmadeError(exceptions.ActorDiedError):
  """As Ray says it where a class cannot be imported."""

  def __str__(self):
    return (
      "The actor died because of an error raised in its creation task\n"
      "ModuleNotFoundError: No module named 'tf_mmdrl'"
    )


def test_a_machine_without_this_package_is_one_line(monkeypatch, tmp_path):
  """It was tried ten times, and the last line did not say why."""
  process, _ = _run(monkeypatch, tmp_path)
  unmade = _UnmadeError()
  monkeypatch.setattr(run_host.ray, "get", lambda _: _raise(unmade))
  said = "cannot begin a run: .*No module named 'tf_mmdrl'.*; install"
  with pytest.raises(errors.UserError, match=said):
    process.wait()


def _raise(error):
  raise error


def test_what_is_wrong_is_said_before_the_others_end():
  """A sweep said it when all other runs had come to their end."""
  stopped = threading.Event()

  def run(value):
    if value:
      raise errors.UserError("other versions")
    assert stopped.wait(20)

  with concurrent.futures.ThreadPoolExecutor(2) as pool:
    with pytest.raises(errors.UserError, match="other versions"):
      sweeps.in_threads(pool, run, [0, 1])
    stopped.set()


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
