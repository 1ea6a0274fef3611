"""What goes wrong with clusters is one line that says what to do."""

import copy
import os
import pathlib
import queue
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from unittest import mock

import pytest
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.cluster import connection, nodes, ray_processes
from tf_mmdrl.core import errors
from tf_mmdrl.train import machine, run_directory, stopping


@pytest.fixture
def token(tmp_path, monkeypatch):
  """A place for a token that is a test's own."""
  monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
  path = tmp_path / "secret" / "token"
  monkeypatch.setenv(connection.TOKEN_PATH, str(path))
  monkeypatch.setattr(connection, "_PLACE", tmp_path)
  return path


def test_a_token_is_its_owners_alone(token):
  assert nodes.make_token() == token
  assert stat.S_IMODE(token.stat().st_mode) == 0o600
  first = token.read_text()
  assert len(first) == 64
  nodes.make_token()
  assert token.read_text() == first  # others have copies of it
  token.chmod(0o644)
  with pytest.raises(errors.UserError, match="others can read.*chmod 600"):
    connection.require_token()
  token.chmod(0o600)
  token.write_text("\n")
  with pytest.raises(errors.UserError, match="is empty"):
    connection.require_token()


def _fifo(path):
  os.mkfifo(path)


def _link(path):
  path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda path: path.write_bytes(b"\xff\x00\x80"), "holds no token"),
    (lambda path: path.write_text("a\nb"), "holds no token"),
    (lambda path: path.write_text("a" * 100_000), "holds no token"),
    (lambda path: path.mkdir(), "holds no token"),
    (_fifo, "holds no token"),
    (_link, "holds no token"),
    (lambda path: path.symlink_to("nowhere"), "there is none"),
    (lambda path: os.chown(_written(path), 4711, 0), "another user's"),
  ],
)
def test_hostile_tokens_are_refused(token, make, message):
  """Nothing waits for a pipe, reads for ever, or ends in a traceback."""
  token.parent.mkdir()
  make(token)
  if token.is_file():
    token.chmod(0o600)
  for refuse in (connection.require_token, nodes.make_token):
    with pytest.raises(errors.UserError, match=message):
      refuse()


def _written(path):
  path.write_text("a" * 64)
  if os.getuid():
    pytest.skip("only root makes files of others")
  return path


def test_a_token_that_cannot_be_written(token):
  token.parent.write_text("a file")
  with pytest.raises(errors.UserError, match="cannot be written.*RAY_AUTH"):
    nodes.make_token()
  assert list(token.parent.parent.iterdir()) == [token.parent]


def test_a_containers_cluster_is_not_ended_from_outside(token):
  """It is seen from here, and its place may have the same name."""
  place = connection.cluster_place()
  sleep = "import time; time.sleep(60)"
  words = [sys.executable, "-c", sleep, str(place)]
  with subprocess.Popen(words) as here:
    deadline = time.monotonic() + 60
    while nodes._processes() != [here.pid]:  # its words are there a bit later
      assert time.monotonic() < deadline
      time.sleep(0.01)
    here.kill()
  if os.getuid() or not shutil.which("unshare"):
    pytest.skip("only root makes mounts of its own")
  with subprocess.Popen(["unshare", "-m", *words]) as there:
    deadline = time.monotonic() + 60
    mounts = pathlib.Path("/proc", str(there.pid), "ns", "mnt")
    while os.readlink(mounts) == os.readlink("/proc/self/ns/mnt"):
      assert time.monotonic() < deadline
      time.sleep(0.01)
    assert nodes._processes() == []
    there.kill()


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"address": 1}', "\xff"])
def test_what_others_put_in_its_place_is_no_node(token, text):
  place = connection.cluster_place()
  place.mkdir()
  (place / "node.json").write_bytes(text.encode("latin1"))
  assert nodes.here() is None
  with pytest.raises(errors.UserError, match="no part of the cluster"):
    connection._host("a:1")


def test_another_users_place_is_not_used(token):
  if os.getuid():
    pytest.skip("only root makes files of others")
  place = connection.cluster_place()
  place.mkdir()
  (place / "node.json").write_text('{"address": "a:1", "host": "b"}')
  assert connection._host("a:1") == "b"
  os.chown(place, 4711, 0)
  with pytest.raises(errors.UserError, match="no part of the cluster"):
    connection._host("a:1")


@pytest.mark.parametrize(
  "words, message",
  [
    (["cluster", "join", "127.0.0.1:6379"], "needs its token"),
    (["train", "--cluster", "127.0.0.1:6379"], "needs its token"),
    (["cluster", "join", "somewhere"], "HOST:PORT, got 'somewhere'"),
    (["cluster", "status"], "part of no cluster"),
    (["train", "--order", "free"], "pass --actors N"),
    (["train", "--actors", "3"], "multiple of system.actors"),
    (["train", "--order", "fre"], "order"),
    (["tune", "--env", "CartPole-v1"], "needs --search"),
    (["train", "--actors", "2", "--cpus", "0"], "--cpus must be above 0"),
    (["sweep", "--collect"], "pass --cluster ADDRESS, too"),
    (["tune", "--gpus", "-1"], "--gpus must be at least 0"),
  ],
)
def test_one_line_says_what_to_do(token, tmp_path, capsys, words, message):
  if words[0] == "train":
    words = [*words, "--run-dir", str(tmp_path / "run")]
  assert main.main(words) == 2
  said = capsys.readouterr().err.strip().splitlines()
  assert said[-1].startswith("mmdrl: ") and message in said[-1]


def test_a_machine_must_be_part_of_the_cluster(token):
  nodes.make_token()
  with (
    pytest.raises(errors.UserError, match="no part of the cluster at a:1"),
    connection.cluster("a:1"),
  ):
    pass


@pytest.mark.parametrize(
  "words, message",
  [
    (["--host", "192.0.2.77"], "'192.0.2.77' is no address of this machine"),
    (["--host", "a.invalid"], "'a.invalid' is no address of this machine"),
    (["--port", "65534"], "ports 65534 to 65537 are wanted"),
    (["--port", "-1"], "ports -1 to 2 are wanted"),
    (["--port", "PORT"], "cannot be had at 127.0.0.1.*pass another --port"),
  ],
)
def test_an_address_is_looked_at_before_ray_is(
  token, monkeypatch, capsys, words, message
):
  """Ray tried for 300 s, and did not say why."""
  monkeypatch.setattr(nodes, "_ray_start", pytest.fail)
  with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = str(taken.getsockname()[1])
    words = [word.replace("PORT", port) for word in words]
    assert main.main(["cluster", "start", *words]) == 2
  said = capsys.readouterr().err.strip().splitlines()
  assert len(said) == 1 and re.search(message, said[0]), said
  assert not token.exists()


def test_a_second_learner_is_refused_before_ray_starts(tmp_path, capsys):
  path = tmp_path / "run"
  path.mkdir()
  first = run_directory.RunDirectory(path)
  words = ["train", "--actors", "1", "--run-dir", str(path)]
  words += ["--set", "system.deterministic=false"]  # of the whole process
  with first.claimed():
    start = "tf_mmdrl.cluster.connection.connected"
    with mock.patch(start, side_effect=AssertionError):
      assert main.main(words) == 2
  said = capsys.readouterr().err.strip().splitlines()[-1]
  assert f"another run (process {os.getpid()}) writes to" in said


def test_a_process_that_all_need_is_missed_at_once():
  """Ray ends a learner without a word then, or lets it wait for ever."""
  ended = queue.Queue()
  words = [sys.executable, "-c", "input()"]
  with (
    subprocess.Popen(words, stdin=-1) as one,
    ray_processes._watching({one.pid: "raylet"}, ended.put),
  ):
    one.kill()
    assert ended.get(timeout=20) == "raylet"
  with subprocess.Popen(words, stdin=-1) as one:
    with ray_processes._watching({one.pid: "raylet"}, ended.put):
      pass
    one.kill()  # nobody watches any more
  assert ended.empty()
  # One that had ended before anybody watched.
  with ray_processes._watching({one.pid: "gcs_server"}, ended.put):
    assert ended.get(timeout=20) == "gcs_server"


@pytest.mark.parametrize(
  "said, wanted",
  [
    (
      "Version mismatch: Ray 2.1 Python 3.12",
      "has other versions.*Python 3.12",
    ),
    ("AuthenticationError: InvalidAuthToken", "does not know this token"),
    ("Can't find a raylet on this node", "mmdrl cluster join h:1 first"),
    ("Failed to connect to GCS at h:1", "no cluster answers at h:1"),
    (
      "The current node timed out during startup. This could happen because"
      " some of the raylet failed",
      "Ray does not start on this machine",
    ),
  ],
)
def test_rays_paragraphs_become_a_line(token, said, wanted):
  line = connection.reason("h:1", said)
  assert "\n" not in line
  with pytest.raises(errors.UserError, match=wanted):
    raise errors.UserError(line)


class _SlowRay:
  """Does not start in time, so often."""

  def __init__(self, times):
    self.times, self.calls = times, 0

  def init(self, **_):
    self.calls += 1
    if self.calls <= self.times:
      raise Exception("The current node timed out during startup. This could")


def test_ray_has_more_time_to_start_than_it_gives_itself(monkeypatch, capfd):
  slow = _SlowRay(2)
  connection._start_here(slow)
  assert slow.calls == 3 and capfd.readouterr().err.count("once more") == 2
  with pytest.raises(errors.UserError, match="does not start.*timed out"):
    connection._start_here(_SlowRay(3))
  # `mmdrl cluster`, by Ray's own command:
  said = ["The current node timed out during startup.", "No space left"]
  tries = []
  monkeypatch.setattr(
    nodes, "_try_to_start", lambda *_: tries.append(1) or said.pop(0)
  )
  monkeypatch.setattr(nodes, "stop", lambda: 0)
  with pytest.raises(errors.UserError, match="No space left"):
    nodes._ray_start(nodes.Node("h:1", "h"), [])
  assert len(tries) == 2


def test_an_actor_must_compute_as_the_learner_does(capsys):
  """Other versions are refused, another processor is told once."""
  from tf_mmdrl.cluster import office, slot_player

  around = machine.surroundings()

  def who(**changed):
    other = copy.deepcopy(around)
    for name, value in changed.items():
      group = "versions" if name in other["versions"] else "machine"
      assert name in other[group]
      other[group][name] = value
    return slot_player.Introduction("far", 7, other, None)

  config = train_fixtures.small("system.actors=2")
  lax, strict = (
    office.Office(config, stopping.Stop(), strict=strict)
    for strict in (False, True)
  )
  lax.check(1, who())
  strict.check(1, who())
  for shared in (lax, strict):
    with pytest.raises(errors.UserError, match="slot 1 on far.*-> 3.12.1"):
      shared.check(1, who(python="3.12.1", cpu="another"))
  assert not capsys.readouterr().err
  lax.check(0, who(cpu="another"))
  lax.check(1, who(cpu="another"))
  assert capsys.readouterr().err.count("far computes with others") == 1
  with pytest.raises(errors.UserError, match="on far.*-> another"):
    strict.check(0, who(cpu="another"))


def test_the_learner_does_not_pass_for_a_late_actor(monkeypatch):
  """In free order it answers for one, and the actor still has to join."""
  from tf_mmdrl.cluster import office, ray_slot, waiting

  def late(*_):
    raise waiting.LateError

  monkeypatch.setattr(ray_slot.RaySlot, "_hire", lambda slot: None)
  monkeypatch.setattr(ray_slot.RaySlot, "_answer", late)
  config = train_fixtures.small("system.actors=2", "system.order=free")
  slot = ray_slot.RaySlot(0, office.Office(config, stopping.Stop()))
  assert slot.replayed_because is None
  assert slot.process is None and "has not started" in slot.name
  slot.close()


def test_without_ray_the_line_installs_it(tmp_path):
  code = (
    "import sys; sys.modules['ray'] = None;"
    "from tf_mmdrl.cli import main;"
    f"sys.exit(main.main(['train', '--actors', '2', '--run-dir',"
    f" {str(tmp_path / 'run')!r}]))"
  )
  done = subprocess.run(
    [sys.executable, "-c", code],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
  )
  assert done.returncode == 2
  assert "pip install 'tf-mmdrl[cluster]'" in done.stderr.splitlines()[-1]
