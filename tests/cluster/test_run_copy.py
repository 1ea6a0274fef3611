"""A run's copy at home is what a run leaves that was killed, at any time."""

import pytest

from tf_mmdrl.cluster import run_copy
from tf_mmdrl.core import errors


def _write(root, **files):
  for name, text in files.items():
    path = root / name.replace("__", "/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _texts(root):
  return {name: (root / name).read_text() for name in run_copy.listing(root)}


def _fetch(copy, root, between=lambda: None):
  before = run_copy.listing(root)
  wanted = copy.wanted(before)
  contents = run_copy.read(root, wanted)
  between()
  copy.receive(before, contents, run_copy.listing(root))
  return sorted(wanted)


@pytest.fixture
def places(tmp_path):
  """Where a run is, its copy's place, and the copy."""
  there, home = tmp_path / "there", tmp_path / "home"
  _write(
    there,
    **{
      "config.json": "settings",
      "metrics.csv": "1",
      "replay__a.arrays": "steps",
      "checkpoints__64__state.json": "at 64",
      "checkpoints__64__agent": "weights",
      "checkpoints__.tmp-128__agent": "half",
      "lock": "7",
    },
  )
  return there, home, run_copy.HomeCopy(home)


def test_only_what_is_new_travels(places):
  there, home, copy = places
  assert len(_fetch(copy, there)) == 5
  wanted = _texts(there)
  assert _texts(home) == wanted and "checkpoints/64/agent" in wanted
  assert not any("tmp-" in name or name == "lock" for name in wanted)
  assert _fetch(copy, there) == []
  _write(there, **{"metrics.csv": "1,2", "export__64__model": "policy"})
  assert _fetch(copy, there) == ["export/64/model", "metrics.csv"]
  assert _texts(home) == _texts(there)


def test_what_the_run_removed_is_removed_at_home(places):
  there, home, copy = places
  _write(there, **{"checkpoints__32__agent": "old", "replay__0.arrays": "o"})
  _fetch(copy, there)
  assert (home / "checkpoints/32").is_dir()
  (there / "checkpoints/32/agent").unlink()
  (there / "replay/0.arrays").unlink()
  _fetch(copy, there)
  assert _texts(home) == _texts(there)
  assert not (home / "checkpoints/32").exists()


def test_a_checkpoint_that_goes_meanwhile_does_not_come_home(places):
  """Its replay may have been removed before it was read."""
  there, home, copy = places

  def moves_on():
    _write(
      there, **{"checkpoints__96__agent": "new", "replay__b.arrays": "more"}
    )
    for name in ("checkpoints/64/agent", "checkpoints/64/state.json"):
      (there / name).unlink()

  _fetch(copy, there, moves_on)
  names = set(_texts(home))
  # 96 was not there before: its data may not have been read.
  assert names == {"config.json", "metrics.csv", "replay/a.arrays"}
  _fetch(copy, there)
  assert _texts(home) == _texts(there)


def test_a_part_of_a_checkpoint_that_changed_keeps_the_rest(places):
  there, home, copy = places
  _fetch(copy, there)
  _write(there, **{"checkpoints__64__state.json": "at 64, once more"})
  assert _fetch(copy, there) == ["checkpoints/64/state.json"]
  assert _texts(home) == _texts(there)
  assert not list(home.glob("checkpoints/.tmp-*"))


def test_what_changed_and_did_not_arrive_is_fetched_again(places):
  there, home, copy = places
  _fetch(copy, there)
  _write(there, **{"checkpoints__64__agent": "other", "metrics.csv": "1,2,3"})
  before = run_copy.listing(there)
  # The checkpoint had gone when it was read, the file had not.
  copy.receive(
    before, {"metrics.csv": b"1,2,3"}, {"metrics.csv": before["metrics.csv"]}
  )
  assert _fetch(copy, there) == ["checkpoints/64/agent"]
  assert _texts(home) == _texts(there)


def test_what_was_sent_is_not_fetched(places, tmp_path):
  there, home, copy = places
  _fetch(copy, there)
  other = tmp_path / "other"
  for names in run_copy.pieces(copy.holds()):
    run_copy.write(other, copy.read(names))
  assert _texts(other) == _texts(there)
  copy.begin(run_copy.listing(other))
  assert _fetch(copy, other) == []


def test_names_stay_below_the_run(tmp_path):
  for name in ("../x", "/x", "a/../../x"):
    with pytest.raises(errors.UserError, match="has no file"):
      run_copy.write(tmp_path / "run", {name: b""})
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / "link").symlink_to("/etc/hostname")
  assert run_copy.listing(tmp_path / "run") == {}


def test_files_travel_in_pieces(monkeypatch):
  monkeypatch.setattr(run_copy, "_PIECE", 10)
  sizes = dict(a=4, b=6, c=1, d=30, e=2)
  there = {name: run_copy.Stamp(size, 0) for name, size in sizes.items()}
  assert list(run_copy.pieces(there)) == [["a", "b"], ["c"], ["d"], ["e"]]
  assert list(run_copy.pieces({})) == []
