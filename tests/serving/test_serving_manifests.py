"""A version that is not what was published is not loaded, and said so."""

import asyncio
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

import numpy as np
import pytest
import serving_fixtures

from tf_mmdrl import serving
from tf_mmdrl.cli import main
from tf_mmdrl.core import UserError, whole_files
from tf_mmdrl.serving import manifests, models, store

_OLD = pathlib.Path(__file__).parents[1] / "train" / "made_before"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
  """A directory with version 7."""
  directory = tmp_path_factory.mktemp("published")
  serving.publish(
    serving_fixtures.weighted_network(),
    directory,
    7,
    metadata={"step": 7},
    extras=[lambda path: (path / "extra.txt").write_text("extra")],
  )
  return directory


@pytest.fixture
def version(published, tmp_path):
  """The path of a copy of version 7."""
  return shutil.copytree(published / "7", tmp_path / "7")


def _load(path):
  return serving.load(serving_fixtures.weighted_network(), path.parent)


def _files(path):
  return [file for file in sorted(path.rglob("*")) if file.is_file()]


def test_every_file_is_in_the_manifest_and_whole(version):
  names = {str(file.relative_to(version)) for file in _files(version)}
  assert "assets.extra/extra.txt" in names and len(names) > 5
  content = whole_files.read_json(version / "manifest.json")
  assert content["format"] == 2
  assert set(content["files"]) == names - {"manifest.json"}
  assert manifests.verify(version)
  assert _load(version).checked
  assert serving.metadata(version.parent, 7) == {"format": 2, "step": 7}


def _truncate(file):
  content = file.read_bytes()
  file.write_bytes(content[: len(content) // 2])


def _flip(file):
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)


def _empty(file):
  file.write_bytes(b"")


def _link(file):
  target = pathlib.Path(tempfile.mkdtemp(), file.name)
  shutil.move(file, target)
  file.symlink_to(target)


def _pipe(file):
  file.unlink()
  os.mkfifo(file)


_DAMAGES = [_truncate, _flip, _empty, _link, _pipe, pathlib.Path.unlink]


@pytest.mark.parametrize("damage", _DAMAGES)
def test_no_damage_to_any_file_goes_unseen(published, tmp_path, damage):
  names = [file.relative_to(published) for file in _files(published / "7")]
  for index, name in enumerate(names):
    directory = tmp_path / str(index)
    shutil.copytree(published, directory)
    damage(directory / name)
    with pytest.raises(UserError) as caught:
      _load(directory / "7")
    text = str(caught.value)
    assert text.startswith("version 7 in ") and "cannot be used" in text
    assert f"{name.name}' is" in text and "\n" not in text


def test_what_was_put_in_is_refused_but_among_the_extras(version):
  (version / "assets.extra" / "warmup").touch()
  assert manifests.verify(version)
  (version / "variables" / "more").touch()
  with pytest.raises(UserError, match="'variables/more' is not in its man"):
    manifests.verify(version)


def test_a_linked_directory_inside_is_refused(version, tmp_path):
  shutil.move(version / "variables", tmp_path / "variables")
  (version / "variables").symlink_to(tmp_path / "variables")
  with pytest.raises(UserError, match="'variables' is a link; copy the file"):
    models.open_model(tmp_path)


@pytest.mark.parametrize("load", [_load, lambda p: models.open_model(p.parent)])
def test_a_version_that_is_a_link_is_refused(version, tmp_path, load):
  shutil.move(version, tmp_path / "elsewhere")
  version.symlink_to(tmp_path / "elsewhere")
  with pytest.raises(UserError, match="version 7 in .*: it is a link; copy"):
    load(version)


def test_a_version_that_changes_while_it_is_read_is_not_served(
  version, monkeypatch
):
  def load(directory, number):
    model = models.open_model(directory, number)
    (version / "assets.extra" / "late").touch()
    return model

  monkeypatch.setattr(store, "open_model", load)
  made = store.Store(version.parent, count=1, make_batcher=lambda _: None)
  assert not asyncio.run(made.refresh()) and not made.numbers
  assert made.failures == {7: "it changed while it was read"}
  monkeypatch.undo()
  assert asyncio.run(made.refresh()) == [7] and not made.failures


def test_damage_that_keeps_the_size_is_seen_while_the_version_is_served(
  version,
):
  made = store.Store(version.parent, count=1, make_batcher=lambda _: None)
  assert asyncio.run(made.refresh()) == [7] and not made.failures
  _flip(version / "variables" / "variables.data-00000-of-00001")
  assert not asyncio.run(made.refresh())
  assert "is damaged" in made.failures[7]
  assert made.numbers == [7]  # as it was


def test_a_later_format_is_told(version):
  content = whole_files.read_json(version / "manifest.json")
  whole_files.write_json(version / "manifest.json", {**content, "format": 3})
  with pytest.raises(UserError, match="later format, 3; this version reads"):
    _load(version)


def _forget_the_manifest(path):
  """Makes a version what earlier ones were."""
  (path / "manifest.json").unlink()
  metadata = path / "assets" / "metadata.json"
  content = json.loads(metadata.read_text())
  del content["format"]
  metadata.write_text(json.dumps(content))


def test_a_version_without_a_manifest_loads_unchecked(version):
  wanted, _ = _load(version).network(serving_fixtures.observations(2))
  _forget_the_manifest(version)
  policy = _load(version)
  found, _ = policy.network(serving_fixtures.observations(2))
  np.testing.assert_array_equal(found.values, wanted.values)
  assert not policy.checked
  assert not models.open_model(version.parent).checked


@pytest.mark.parametrize("load", [_load, lambda p: models.open_model(p.parent)])
@pytest.mark.parametrize("damage", [_truncate, _empty, pathlib.Path.unlink])
@pytest.mark.parametrize(
  "name",
  ["variables/variables.index", "variables/variables.data-00000-of-00001"],
)
def test_damage_that_cannot_be_checked_is_one_line_too(
  version, load, damage, name
):
  _forget_the_manifest(version)
  damage(version / name)
  with pytest.raises(UserError, match="^version 7 in .*cannot be used: ") as e:
    load(version)
  assert "\n" not in str(e.value)


def test_a_damaged_fingerprint_is_no_traceback(version, capfd, caplog):
  """TensorFlow itself logs one, and loads the model."""
  _forget_the_manifest(version)
  _truncate(version / "fingerprint.pb")
  with pytest.raises(UserError, match="cannot be used: .*ingerprint"):
    models.open_model(version.parent)
  assert not caplog.records
  assert "Traceback" not in capfd.readouterr().err
  (version / "fingerprint.pb").unlink()
  models.open_model(version.parent)


def test_weights_of_another_network_are_told(run, published, capsys):
  shutil.copytree(published / "7", run / "export" / "999")
  try:
    assert main.main(["evaluate", str(run), "--episodes", "1"]) == 2
  finally:
    shutil.rmtree(run / "export" / "999")
  error = capsys.readouterr().err
  assert "version 999" in error and error.count("\n") == 1


def test_evaluate_and_play_say_damage_in_one_line(run, tmp_path, capsys):
  copy = shutil.copytree(run, tmp_path / "run")
  _flip(copy / "export" / "320" / "variables/variables.data-00000-of-00001")
  for command in (["evaluate", str(copy)], ["play", str(copy / "export")]):
    assert main.main(command) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "variables.data" in error
    assert "mmdrl export" in error


@pytest.mark.parametrize("name", ["run_0_1", "run_format_2"])
def test_exports_made_before_load_with_one_line(tmp_path, capsys, name):
  with tarfile.open(_OLD / f"{name}.tar.xz") as file:
    file.extractall(tmp_path, filter="data")
  run = tmp_path / "run"
  for command in (["evaluate", str(run)], ["play", str(run / "export")]):
    assert main.main([*command, "--episodes", "1"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert sum("has no manifest" in line for line in said) == 1, said
  with serving_fixtures.serving(run / "export") as server:
    assert sum("has no manifest" in line for line in server.log) == 1
    assert server.predict({"instances": [[0, 0, 0, 0]]})[0] == 200


def test_a_new_export_is_loaded_without_a_word(run, capsys):
  assert main.main(["play", str(run / "export")]) == 0
  assert capsys.readouterr().err == ""
