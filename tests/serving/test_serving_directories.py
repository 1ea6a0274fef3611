"""A version is there whole or not at all, whenever a writer is killed."""

import os
import threading

import kill_points
import pytest

from tf_mmdrl.core import UserError, whole_files
from tf_mmdrl.serving import directories

_FILES = ("saved_model.pb", "variables/a", "variables/b", "assets/c")


def _publish(directory, number, text):
  with directories.publishing(directory, number) as path:
    for name in _FILES:
      (path / name).parent.mkdir(parents=True, exist_ok=True)
      (path / name).write_text(text)


def _read(directory):
  """Number -> text, each version of one text and with all of its files."""
  found = {}
  for number in directories.versions(directory):
    (text,) = {(directory / str(number) / f).read_text() for f in _FILES}
    found[number] = text
  return found


@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_at_any_moment_leaves_the_old_or_the_new(tmp_path, number):
  event, outcomes = 0, set()
  while True:
    directory = tmp_path / str(event)
    _publish(directory, 1, "old")
    killed = kill_points.killed_at(
      event, lambda d=directory: _publish(d, number, "new")
    )
    found = _read(directory)
    assert found in ({1: "old"}, {1: "old", number: "new"}), (event, found)
    outcomes.add(len(found) == number and found[number] == "new")
    _publish(directory, 3, "next")  # what was left does not hinder
    assert {path.name for path in directory.iterdir()} == {
      ".lock",
      *map(str, directories.versions(directory)),
    }
    if not killed:
      break
    event += 1
  assert event > 20 and outcomes == {False, True}


def test_a_kill_while_removing_leaves_no_half_version(tmp_path):
  event = 0
  while True:
    directory = tmp_path / str(event)
    _publish(directory, 1, "old")
    _publish(directory, 2, "new")
    killed = kill_points.killed_at(
      event, lambda d=directory: directories.remove(d, 1)
    )
    assert _read(directory) in ({1: "old", 2: "new"}, {2: "new"})
    if not killed:
      break
    event += 1
  assert event > 5


def test_an_error_while_writing_leaves_nothing(tmp_path):
  _publish(tmp_path, 1, "old")
  with (
    pytest.raises(RuntimeError),
    directories.publishing(tmp_path, 1) as path,
  ):
    path.mkdir()
    raise RuntimeError
  assert _read(tmp_path) == {1: "old"}
  assert {path.name for path in tmp_path.iterdir()} == {".lock", "1"}


def test_without_an_exchange_two_renames_do(tmp_path, monkeypatch):
  monkeypatch.setattr(whole_files.ctypes, "CDLL", lambda name: object())
  _publish(tmp_path, 1, "old")
  _publish(tmp_path, 1, "new")
  assert _read(tmp_path) == {1: "new"}


def test_writers_wait_for_each_other(tmp_path):
  threads = [
    threading.Thread(target=_publish, args=(tmp_path, number % 3, str(number)))
    for number in range(12)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert sorted(_read(tmp_path)) == [0, 1, 2]


def test_only_numbers_are_versions(tmp_path):
  for name in ("7", "10", "007", "x", "²", "٣", ".tmp-3", "-1"):
    (tmp_path / name).mkdir()
  (tmp_path / "8").touch()
  assert directories.versions(tmp_path) == [7, 10]
  assert directories.versions(tmp_path / "nowhere") == []


def test_versions_are_found_or_told(tmp_path):
  with pytest.raises(UserError, match="no exported policy"):
    directories.find(tmp_path)
  _publish(tmp_path, 1, "a")
  _publish(tmp_path, 20, "b")
  assert directories.find(tmp_path) == 20
  assert directories.find(tmp_path, 1) == 1
  with pytest.raises(UserError, match="no version 3; there are 1, 20"):
    directories.find(tmp_path, 3)


def test_what_to_pass_instead_is_told(tmp_path):
  _publish(tmp_path / "run" / "export", 20, "b")
  for place, message in (
    ("nowhere", "there is no directory"),
    ("run", "is a run; pass its policies, .*run/export"),
    ("run/export/20", "one version; pass .*run/export', which"),
  ):
    with pytest.raises(UserError, match=message):
      directories.find(tmp_path / place)


def test_a_first_version_that_fails_leaves_nothing(tmp_path):
  directory = tmp_path / "new" / "policies"
  with pytest.raises(OSError), directories.publishing(directory, 1):  # noqa: B017, PT011
    raise OSError
  assert not list(tmp_path.iterdir())
  _publish(directory, 1, "old")
  with pytest.raises(OSError), directories.publishing(directory, 2):  # noqa: B017, PT011
    raise OSError
  assert _read(directory) == {1: "old"}
  assert (directory / ".lock").exists()


def test_who_waited_for_a_lock_that_was_removed_locks_the_next(tmp_path):
  lock = directories._lock(tmp_path / ".lock")
  locked = []
  waiting = threading.Thread(
    target=lambda: locked.append(directories._lock(tmp_path / ".lock"))
  )
  waiting.start()
  (tmp_path / ".lock").unlink()
  os.close(lock)
  waiting.join()
  there = (tmp_path / ".lock").stat()
  assert os.path.samestat(os.fstat(locked[0]), there)
  os.close(locked[0])
