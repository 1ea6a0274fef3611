"""What a host writes comes home, and goes to the host that takes over.

The host is called here in this process; test_run_host.py does it by Ray.
"""

import types

import pytest

from tf_mmdrl.cluster import collected_run, own_place, run_copy, run_host
from tf_mmdrl.core import errors


class _Host:
  """Calls a `RunHost` at once, as Ray's handle would be called."""

  def __init__(self, place):
    self.itself = run_host.RunHost()
    self.itself._place = own_place.OwnPlace("host-", place)
    self.run = self.itself._own / "run"

  def __getattr__(self, name):
    return types.SimpleNamespace(remote=getattr(self.itself, name))


@pytest.fixture
def places(tmp_path, monkeypatch):
  """Where hosts are, and where the run's copy is."""
  monkeypatch.setattr(collected_run.ray, "get", lambda answer, timeout: answer)
  return tmp_path, tmp_path / "home" / "seed0", tmp_path / "home" / "seed0.log"


def _texts(root):
  return {name: (root / name).read_text() for name in run_copy.listing(root)}


def test_a_run_comes_home_and_goes_on_elsewhere(places):
  there, home, log = places
  copy, first = collected_run.Collected(home, log), _Host(there)
  copy.send(first)  # there is nothing yet
  (first.run / "checkpoints" / "64").mkdir(parents=True)
  (first.run / "checkpoints" / "64" / "agent").write_text("weights")
  (first.run / "config.json").write_text("settings")
  (first.itself._own / "log").write_text("begins\n")
  copy.fetch(first)
  (first.itself._own / "log").write_text("begins\ngoes on\n")
  copy.fetch(first, at_once=False)  # a moment ago
  assert log.read_text() == "begins\n"
  copy.fetch(first)
  assert _texts(home) == _texts(first.run) and len(_texts(home)) == 2
  assert log.read_text() == "begins\ngoes on\n"
  second = _Host(there)
  copy.send(second)
  assert _texts(second.run) == _texts(home)
  (second.itself._own / "log").write_text("goes on elsewhere\n")
  copy.fetch(second)
  assert log.read_text() == "begins\ngoes on\ngoes on elsewhere\n"
  for host in (first, second):
    copy.clear(host)
    assert not host.run.parent.exists()


def test_a_disk_that_is_full_at_home(places):
  there, home, log = places
  copy, host = collected_run.Collected(home, log), _Host(there)
  host.run.mkdir()
  (host.run / "config.json").write_text("settings")
  home.write_text("a file where the run's directory is to be")
  with pytest.raises(errors.UserError, match="cannot be fetched.*Make room"):
    copy.fetch(host)
  copy.clear(host)
