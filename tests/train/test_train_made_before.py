"""Runs that earlier versions made, kept as files, and what is done with them.

`run_0_1.tar.xz` is a run of version 0.1 without its checkpoints, and
`run_format_2.tar.xz` one of the first version that wrote the format of today;
every later version must go on with it. Both are 1,536 steps of CartPole.
"""

import json
import pathlib
import tarfile

import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import run_directory, trainer

_FILES = pathlib.Path(__file__).parent / "made_before"


def _unpacked(name, tmp_path):
  with tarfile.open(_FILES / f"{name}.tar.xz") as file:
    file.extractall(tmp_path, filter="data")
  return run_directory.RunDirectory(tmp_path / "run")


def _edit(directory, change):
  path = directory.path / "config.json"
  content = json.loads(path.read_text())
  change(content)
  path.write_text(json.dumps(content))


def _longer(directory):
  config = directory.config()
  return configs.change(config, ["schedule.steps=2048"])


def test_a_run_of_this_format_goes_on(tmp_path, capfd):
  """Also after what is not understood was refused: nothing is lost by it."""
  directory = _unpacked("run_format_2", tmp_path)
  before, config = directory.metrics.read_text(), _longer(directory)
  _edit(directory, lambda content: content["config"]["replay"].update(siz=1))
  with pytest.raises(errors.UserError, match="setting 'replay.siz'"):
    trainer.train(config, directory)
  _edit(directory, lambda content: content["config"]["replay"].pop("siz"))
  _edit(directory, lambda content: content.update(format=99))
  with pytest.raises(errors.UserError, match="in a later format"):
    trainer.train(config, directory)
  _edit(directory, lambda content: content.update(format=2))
  outcome = trainer.train(config, directory)
  assert outcome.finished and outcome.step == 2048
  assert directory.metrics.read_text().startswith(before)
  assert "goes on at step 1,536 of 2,048" in capfd.readouterr().err


def test_a_setting_that_is_missing_has_its_default_and_is_named(
  tmp_path, capfd
):
  directory = _unpacked("run_format_2", tmp_path)

  def change(content):
    del content["config"]["evaluation"]["score"]
    del content["config"]["agent"]["kernel"]  # one of MMDQN's own

  _edit(directory, change)
  wanted = configs.change(_longer(directory), ["evaluation.score=cvar:0.5"])
  assert trainer.train(wanted, directory).finished
  shown = capfd.readouterr().err
  for name, value in (
    ("evaluation.score", "mean"),
    ("agent.kernel", "gaussian_mixture:1..10+smooth_energy:1"),
  ):
    assert f"older than the setting {name}, which is {value} for it" in shown
  assert directory.config().evaluation.score == "mean"  # and so it stays


def test_version_0_1s_run_is_refused_for_training_in_one_line(tmp_path, capfd):
  directory = _unpacked("run_0_1", tmp_path)
  before = (directory.path / "config.json").read_bytes()
  code = main.main(["train", "--run-dir", str(directory.path)])
  shown = capfd.readouterr().err.strip().splitlines()
  assert code == main.EXIT_BAD_INPUT
  assert "was made by tf-mmdrl 0.1" in shown[-1]
  assert (directory.path / "config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["run_0_1", "run_format_2"])
def test_old_runs_are_evaluated_played_watched_and_reported(
  tmp_path, capfd, name
):
  run = _unpacked(name, tmp_path).path
  for line in (
    ["evaluate", str(run)],
    ["play", str(run / "export")],
    ["watch", str(run), "-o", str(tmp_path / "game.gif"), "--max-steps", "5"],
    ["report", str(run), "-o", str(tmp_path / "report")],
  ):
    assert main.main(line) == main.EXIT_OK, line
    capfd.readouterr()
  assert (tmp_path / "game.gif").stat().st_size > 1000
  assert list((tmp_path / "report").glob("*.html"))
