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


@pytest.mark.parametrize("name", ["²", "٧", "64", "+7", "7e0", "7_0", "x"])
def test_only_its_own_names_are_checkpoints(tmp_path, name):
  """Digits of other scripts are digits to Python, but no steps."""
  _save(tmp_path, 5, "old")
  for other in (name, f".tmp-{name}", f".tmp-{name}-old"):
    (tmp_path / other).mkdir()
  assert checkpoints.Checkpoints(tmp_path).steps() == [5]
  assert _resume(tmp_path) == (5, "old")


def test_links_that_lie_in_the_way_are_not_followed(tmp_path):
  """A run's directory may come from elsewhere."""
  mine = tmp_path / "mine"
  (mine / "inner").mkdir(parents=True)
  (mine / "file").write_text("precious")
  there = tmp_path / "checkpoints"
  there.mkdir()
  (there / f".tmp-{7:012d}").symlink_to(mine)
  (there / f".gone-{7:012d}").symlink_to(mine)
  _save(there, 7, "new")
  assert _resume(there) == (7, "new")
  (there / f"{7:012d}" / "manifest.json.tmp").symlink_to(mine / "file")
  whole_files.write(there / f"{7:012d}" / "manifest.json", b"{}")
  assert (mine / "file").read_text() == "precious"
  assert sorted(p.name for p in mine.iterdir()) == ["file", "inner"]
  assert [path.name for path in there.iterdir()] == [f"{7:012d}"]


def _raise(error):
  raise error


@pytest.mark.parametrize(
  "content", [{}, {"files": []}, {"files": None}, {"other": {}}]
)
def test_a_manifest_that_lists_nothing_is_damage(tmp_path, content):
  _save(tmp_path, 5, "old")
  _save(tmp_path, 7, "new")
  manifest = tmp_path / f"{7:012d}" / "manifest.json"
  whole_files.write_json(manifest, content)
  warned = []
  checkpoints.restore_newest(
    checkpoints.Checkpoints(tmp_path), lambda path: None, warned.append
  )
  assert "the checkpoint of step 7 is passed over" in warned[0]


@pytest.mark.parametrize(
  "error", [KeyError("actors"), TypeError("None"), OSError(2, "No such file")]
)
def test_a_checkpoint_of_something_else_is_passed_over(tmp_path, error):
  _save(tmp_path, 5, "old")
  _save(tmp_path, 7, "new")
  there, warned = checkpoints.Checkpoints(tmp_path), []

  def read(path):
    if path.name.endswith("7"):
      raise error

  assert checkpoints.restore_newest(there, read, warned.append)
  assert type(error).__name__ in warned[0] and "step 7" in warned[0]
  with pytest.raises(errors.UserError, match="not mine"):  # a user's to mend
    checkpoints.restore_newest(
      there, lambda path: _raise(errors.UserError("not mine")), warned.append
    )


def test_files_appear_together_or_not_at_all(tmp_path):
  contents = {"a": b"new", "b": b"new"}
  (tmp_path / "a").write_bytes(b"old")
  (tmp_path / "b").mkdir()  # in the way
  mine = tmp_path / "mine"
  mine.write_bytes(b"precious")
  (tmp_path / "a.tmp").symlink_to(mine)
  with pytest.raises(OSError):
    whole_files.write_all(tmp_path, contents)
  assert (tmp_path / "a").read_bytes() == b"old"
  assert mine.read_bytes() == b"precious"
  assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "mine"]
