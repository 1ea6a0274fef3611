"""A disk that is full, or where nothing can be written: what a run does."""

import shutil
import subprocess

import pytest
import train_fixtures

from tf_mmdrl.core import errors, full_disk
from tf_mmdrl.train import metrics as metrics_file
from tf_mmdrl.train import run_directory, runs, trainer, watching


@pytest.fixture
def small_disk(tmp_path):
  """Makes a disk of so many kB; only the superuser may."""
  disk = tmp_path / "disk"
  disk.mkdir()

  def mount(size):
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
      pytest.skip("a small disk cannot be mounted here")
    return disk

  yield mount
  subprocess.run(["umount", "-l", str(disk)], capture_output=True)


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
  assert "MB or more, and " in said and "MB are free" in said
  assert "\n" not in said and "node" not in said
  left = [path.name for path in disk.rglob("*")]
  assert not [name for name in left if ".tmp" in name]
  with runs.restored(directory.path) as state:
    assert state.step == 160


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
  assert full_disk.megabytes(1_234_567_890) == "1,234.6 MB"
