"""A disk that is full, or where nothing can be written: what a run does."""

import os
import re
import shutil
import tempfile
import types

import numpy as np
import pytest
import train_fixtures

from tf_mmdrl.core import errors, full_disk, whole_files
from tf_mmdrl.report.return_histograms import Moment
from tf_mmdrl.train import metrics as metrics_file
from tf_mmdrl.train import run_directory, runs, trainer, videos, watching


def _row(metrics, step):
  return metrics.add_row(
    step=step,
    updates=1,
    epsilon=0.5,
    replay_steps=7,
    evaluation=None,
    unit=1.0,
    beyond_reach=0.0,
  )


def test_a_run_on_a_small_disk_keeps_what_fitted(small_disk, capfd):
  disk = small_disk(3400)  # a checkpoint and an export, and no more
  config = train_fixtures.small("schedule.steps=320")
  directory = run_directory.RunDirectory(disk / "run")
  with pytest.raises(errors.UserError, match="No space left") as raised:
    trainer.train(config, directory)
  said = str(raised.value)
  assert (
    "checkpoint of step 320" in said and "that of step 160 is whole" in said
  )
  assert re.search(
    r"needs ([\d.]+ [kM]B or more, and [\d.]+ ([kM]B|bytes) are free"
    r"|more than the [\d.]+ [kM]B that are free)",
    said,
  )
  assert "\n" not in said and "node" not in said
  left = [path.name for path in disk.rglob("*")]
  assert not [name for name in left if ".tmp" in name]
  with runs.restored(directory.path) as state:
    assert state.step == 160


@pytest.mark.parametrize(
  "size, free, wanted",
  [
    (2_000_000, 65_536, "needs 2.0 MB or more, and 65.5 kB are free"),
    (65_536, 0, "needs 65.5 kB or more, and 0 bytes are free"),
    (65_520, 65_510, "needs 65,520 bytes or more, and 65,510 bytes are free"),
    (65_100, 65_536, "needs more than the 65.5 kB that are free: 65.1 kB of"),
  ],
)
def test_what_is_needed_is_always_more_than_what_is_free(
  monkeypatch, tmp_path, size, free, wanted
):
  usage = types.SimpleNamespace(free=free)
  monkeypatch.setattr(full_disk.shutil, "disk_usage", lambda _: usage)
  assert full_disk.shortage(size, tmp_path).startswith(wanted)


def test_summaries_that_do_not_fit_are_left_out(small_disk, capfd):
  config = train_fixtures.small()
  directory = run_directory.RunDirectory(small_disk(8))
  (directory.path / "rest").write_bytes(b"0" * 4096)  # one page is left
  watcher = watching.Watcher(directory, config, 0)
  for step in range(200):
    row = dict.fromkeys(metrics_file.COLUMNS, 1.0)
    watcher.report({**row, "step": step})
  watcher.close()
  shown = capfd.readouterr().err
  assert shown.count("summaries cannot be written (No space left") == 1


def test_summaries_that_cannot_be_written_are_left_out(tmp_path, capfd):
  directory = run_directory.RunDirectory(tmp_path)
  directory.tensorboard.write_text("no directory")
  watcher = watching.Watcher(directory, train_fixtures.small(), 5)
  assert watcher.writer is None
  watcher.report({**dict.fromkeys(metrics_file.COLUMNS, 1.0), "step": 6})
  watcher.close()
  shown = capfd.readouterr().err
  assert shown.count("are left out from step 5 on; the run goes on") == 1


def test_half_a_row_does_not_stay(small_disk):
  disk = small_disk(8)
  metrics = metrics_file.Metrics(disk / "metrics.csv", "chain")
  metrics.begin()
  _row(metrics, 1)
  before = (disk / "metrics.csv").read_bytes()
  (disk / "rest").write_bytes(b"0" * 4096)
  with pytest.raises(OSError):  # noqa: B017, PT011  (the system's own)
    for step in range(2, 200):
      _row(metrics, step)
  rows = (disk / "metrics.csv").read_text()
  assert rows.startswith(before.decode()) and rows.endswith("\n")
  assert metrics.text == rows


def test_the_reason_is_found_in_many_words():
  error = RuntimeError(
    "{{node Save}} /a/b; No space left on device [Op:SaveV2]"
  )
  assert full_disk.reason(error) == "No space left on device"
  assert full_disk.reason(OSError("first\nsecond")) == "first"


def test_room_is_what_is_free(tmp_path):
  free = shutil.disk_usage(tmp_path).free
  shown = full_disk.room(tmp_path)
  assert shown.endswith("MB are free")
  assert float(shown.split()[0].replace(",", "")) == pytest.approx(
    free / 1e6, rel=0.5
  )
  assert "not known" in full_disk.room(tmp_path / "nowhere")
  assert full_disk.in_words(1_234_567_890) == "1,234.6 MB"
  assert full_disk.in_words(23_456) == "23.5 kB"


def _moments():
  random = np.random.RandomState(0)
  return [
    Moment(noise, noise[:2, :5] / 255, np.full([2, 5], 0.2), 0, 0.0)
    for noise in random.randint(256, size=[3, 40, 40])
  ]


@pytest.mark.parametrize("name", ["game.gif", "picture.png"])
def test_a_video_that_does_not_fit_is_not_there(small_disk, name):
  disk = small_disk(4)
  write = videos.write_stills if name.endswith("png") else videos.write_video
  wanted = (
    r"cannot write .*: No space left on device; it needs (more than the )?"
    r"[\d.]+ [kM]B"
  )
  with pytest.raises(errors.UserError, match=wanted):
    write(_moments(), ["a", "b"], disk / name)
  assert not os.listdir(disk)


def test_a_video_that_ffmpeg_did_not_end_is_told(
  small_disk, tmp_path, monkeypatch, capfd
):
  """It says so to the terminal alone, and leaves half of one."""
  disk = small_disk(4)
  monkeypatch.setattr(tempfile, "tempdir", str(disk))
  with pytest.raises(errors.UserError, match="ffmpeg wrote 0 of 3 pictures"):
    videos.write_video(_moments(), ["a", "b"], tmp_path / "game.mp4")
  assert not os.listdir(disk) and not (tmp_path / "game.mp4").exists()
  assert not capfd.readouterr().err


def test_folders_that_nothing_came_of_are_not_left(small_disk):
  disk = small_disk(8)
  (disk / "old").mkdir()
  contents = {"figures/a": b"a", "old/b": b"b", "c": b"c" * 9000}
  with pytest.raises(OSError, match="No space left"):
    whole_files.write_all(disk, contents)
  assert [path.name for path in disk.rglob("*")] == ["old"]


def test_a_directory_that_was_made_stays_if_it_holds_something(tmp_path):
  with pytest.raises(KeyError), whole_files.made(tmp_path / "a" / "b"):
    (tmp_path / "a" / "file").touch()
    raise KeyError
  assert [path.name for path in tmp_path.rglob("*")] == ["a", "file"]
