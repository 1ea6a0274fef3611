"""A checkpoint is there whole or not at all, whenever a run is killed."""

import kill_points
import pytest

from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.train import checkpoints

_FILES = ("agent", "arrays", "state.json")


def _save(directory, step, text):
  def write(path):
    for name in _FILES:
      (path / name).write_text(text)

  checkpoints.Checkpoints(directory).save(step, write)


def _resume(directory):
  """What a run that goes on does first; the step and text it goes on from."""
  found = []
  there = checkpoints.Checkpoints(directory)
  there.recover()

  def read(path):
    (text,) = {(path / name).read_text() for name in _FILES}
    found.append((int(path.name), text))

  checkpoints.restore_newest(there, read, warn=pytest.fail)
  there.clean(found[0][0])
  return found[0]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_kill_at_any_moment_leaves_a_whole_one(
  tmp_path, monkeypatch, step, atomic
):
  """Also if only one is kept and it is replaced by one of the same step."""
  if not atomic:
    monkeypatch.setattr(whole_files.ctypes, "CDLL", lambda name: object())

  def save_and_prune(directory):
    _save(directory, step, "new")
    checkpoints.Checkpoints(directory).prune(1)

  event, outcomes = 0, set()
  while True:
    directory = tmp_path / str(event)
    _save(directory, 1, "old")
    killed = kill_points.killed_at(
      event, lambda directory=directory: save_and_prune(directory)
    )
    outcomes.add(found := _resume(directory))
    assert found in ((1, "old"), (step, "new")), event
    assert all(p.name.isdigit() for p in directory.iterdir()), event
    if not killed:
      break
    event += 1
  assert event > 20 and outcomes == {(1, "old"), (step, "new")}


def test_a_complete_one_that_was_never_named_is_recovered(tmp_path):
  _save(tmp_path, 7, "new")
  (tmp_path / f"{7:012d}").rename(tmp_path / f".tmp-{7:012d}")
  assert _resume(tmp_path) == (7, "new")
  assert checkpoints.Checkpoints(tmp_path).steps() == [7]


def test_a_complete_one_takes_the_place_of_a_damaged_one(tmp_path):
  _save(tmp_path, 5, "old")
  _save(tmp_path, 7, "new")
  (tmp_path / f"{7:012d}").rename(tmp_path / f".tmp-{7:012d}")
  (tmp_path / f"{5:012d}").rename(tmp_path / f"{7:012d}")
  (tmp_path / f"{7:012d}" / "agent").write_text("changed")
  assert _resume(tmp_path) == (7, "new")
  assert (tmp_path / f"damaged-{7:012d}" / "agent").read_text() == "changed"


def test_a_half_made_one_is_not_recovered(tmp_path):
  _save(tmp_path, 5, "old")
  (tmp_path / f".tmp-{7:012d}").mkdir()
  (tmp_path / f".tmp-{7:012d}" / "agent").write_text("new")
  assert _resume(tmp_path) == (5, "old")
  assert [path.name for path in tmp_path.iterdir()] == [f"{5:012d}"]


def test_a_failed_save_leaves_the_one_of_the_same_step(tmp_path):
  _save(tmp_path, 5, "old")

  def full(path):
    (path / "agent").write_text("half")
    raise OSError(28, "No space left on device")

  with pytest.raises(errors.UserError, match="that of step 5 is whole"):
    checkpoints.Checkpoints(tmp_path).save(5, full)
  assert _resume(tmp_path) == (5, "old")
