"""What can go wrong with a run, and what is left then."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.report import run_results
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import run_directory, run_state, trainer


def directory_of(path):
  return run_directory.RunDirectory(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """A finished run with two checkpoints, at 160 and 320 steps."""
  path = tmp_path_factory.mktemp("finished")
  config = train_fixtures.small("schedule.steps=320")
  trainer.train(config, directory_of(path))
  return path, config


@pytest.fixture
def copied(finished, tmp_path):
  path, config = finished
  subprocess.run(["cp", "-r", str(path), str(tmp_path / "run")], check=True)
  return tmp_path / "run", config


def restored_step(path, config):
  """The step a run goes on from, and the warnings."""
  warnings = []
  state = run_state.RunState(config, directory_of(path))
  try:
    assert state.restore(warnings.append, clean=True)
    return state.step, warnings
  finally:
    state.close()


def files_of(checkpoint):
  return sorted(path.name for path in checkpoint.iterdir())


def test_a_whole_run_is_restored_from_its_newest_checkpoint(copied):
  assert restored_step(*copied) == (320, [])


def test_any_damaged_file_falls_back_to_the_checkpoint_before(copied):
  path, config = copied
  newest = path / "checkpoints" / f"{320:012d}"
  names = files_of(newest)
  assert "manifest.json" in names and "agent.index" in names
  for name in names:
    whole = (newest / name).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (bytes(flipped), whole[:-1], b""):
      (newest / name).write_bytes(damaged)
      checkpoints = run_state.checkpoints.Checkpoints(path / "checkpoints")
      with pytest.raises(run_state.DamagedFileError, match=name):
        checkpoints.verify(320)
    (newest / name).write_bytes(whole)
  (newest / "state.json").write_bytes(b"")
  step, warnings = restored_step(path, config)
  assert step == 160
  assert len(warnings) == 1
  assert "checkpoint of step 320 is passed over" in warnings[0]
  assert (path / "checkpoints" / f"damaged-{320:012d}").is_dir()


def test_damaged_replay_falls_back_too(copied):
  path, config = copied
  newest = max((path / "checkpoints" / "replay").glob("tables-*"))
  data = bytearray(newest.read_bytes())
  data[-1] ^= 1
  newest.write_bytes(data)
  step, warnings = restored_step(path, config)
  assert step == 160 and newest.name in warnings[0]


def test_a_run_goes_on_after_a_fall_back_and_ends_the_same(copied, capfd):
  path, config = copied
  metrics = (path / "metrics.csv").read_bytes()
  (path / "metrics.csv").write_bytes(metrics.replace(b",", b",9", 20))
  (path / "checkpoints" / f"{320:012d}" / "arrays").write_bytes(b"")
  trainer.train(config, directory_of(path))
  assert (path / "metrics.csv").read_bytes() == metrics
  assert "was changed in line" in capfd.readouterr().err
  assert restored_step(path, config) == (320, [])


def test_an_edited_setting_is_told(copied):
  path, config = copied
  content = json.loads((path / "config.json").read_text())
  content["config"]["agent"]["gamma"] = 0.5
  (path / "config.json").write_text(json.dumps(content))
  wanted = r"step 320: agent\.gamma: 0\.99 -> 0\.5"
  with pytest.raises(errors.UserError, match=wanted):
    directory_of(path).config()
  with pytest.raises(errors.UserError, match=wanted):
    run_results.read([str(path)])
  with pytest.raises(errors.UserError, match=wanted):
    trainer.train(
      configs.change(config, ["agent.gamma=0.5"]), directory_of(path)
    )
  content["config"]["agent"]["gamma"] = 0.99
  content["config"]["schedule"]["steps"] = 1000  # this may change
  (path / "config.json").write_text(json.dumps(content))
  assert directory_of(path).config().schedule.steps == 1000


def test_an_edited_score_is_told(copied, capsys):
  path, _ = copied
  metrics = path / "metrics.csv"
  whole = metrics.read_text()
  rows = whole.splitlines(keepends=True)
  metrics.write_text(whole + "half a r")  # a run under way appends
  run_results.read([str(path)])
  for changed in (rows[0] + rows[1].replace(",", ",9", 1), rows[0], ""):
    metrics.write_text(changed)
    line = 1 if not changed else 2
    with pytest.raises(errors.UserError, match=f"changed in line {line} after"):
      run_results.read([str(path)])
  assert main.main(["inspect", str(path)]) == 2
  assert "changed in line 1 after" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["inspect", "evaluate", "export", "watch"])
def test_nothing_that_a_run_names_is_imported(
  copied, monkeypatch, capsys, command
):
  path, _ = copied
  marker = path.parent / "imported"
  (path.parent / "payload.py").write_text(f"open({str(marker)!r}, 'w')")
  monkeypatch.syspath_prepend(path.parent)
  options = ["-o", str(path.parent / "x.gif")] if command == "watch" else []
  whole = (path / "config.json").read_text()
  for group, name in (
    ("environment", "payload:X-v0"),
    ("environment", "payload:0"),
    ("agent", "payload:AGENT"),
  ):
    content = json.loads(whole)
    content["config"][group]["name"] = name
    (path / "config.json").write_text(json.dumps(content))
    assert main.main([command, str(path), *options]) == 2
    said = capsys.readouterr().err
    changed = "config.json' was changed after the checkpoint" in said
    assert "pass --import payload" in said or changed
  assert not marker.exists()


def test_what_a_user_names_is_imported():
  named = configs.Config().replace(environment={"name": "payload:X-v0"})
  with pytest.raises(errors.UserError, match="environment.name=payload:X-v0"):
    configs.refuse_imports(named, ["other"])
  configs.refuse_imports(named, ["payload"])
  kernel = configs.Config(own={"kernel": "gaussian:1"})
  configs.refuse_imports(kernel, [])


def test_without_any_whole_checkpoint_nothing_is_begun_anew(copied):
  path, config = copied
  for checkpoint in (path / "checkpoints").glob("0*"):
    (checkpoint / "manifest.json").unlink()
  with pytest.raises(errors.UserError, match="every checkpoint .* is damaged"):
    restored_step(path, config)


def test_leftovers_of_a_crash_are_removed(copied):
  path, config = copied
  orphan = path / "checkpoints" / ".tmp-000000000480"
  orphan.mkdir()
  (orphan / "agent.index").write_bytes(b"half")
  assert restored_step(path, config)[0] == 320
  assert not orphan.exists()


def test_a_changed_setting_is_named(copied):
  path, config = copied
  changed = configs.change(config, ["agent.gamma=0.5"])
  with pytest.raises(errors.UserError, match=r"agent\.gamma: 0\.99 -> 0\.5"):
    trainer.train(changed, directory_of(path))


@pytest.mark.parametrize(
  "number, message",
  [(1, "was made by tf-mmdrl 0.1 .* can be evaluated"), (3, "a later format")],
)
def test_runs_of_another_format_are_left_alone(copied, number, message):
  path, config = copied
  file = path / "config.json"
  content = json.loads(file.read_text())
  content["format"] = number
  file.write_text(json.dumps(content))
  before = sorted(path.rglob("*"))
  with pytest.raises(errors.UserError, match=message):
    trainer.train(config, directory_of(path))
  assert json.loads(file.read_text()) == content
  assert sorted(path.rglob("*")) == before


def test_a_second_run_in_the_directory_is_refused(copied):
  path, config = copied
  first = directory_of(path)
  config = first.as_begun(config)
  first.open_for_training(config)
  with pytest.raises(errors.UserError, match=f"process {os.getpid()}"):
    directory_of(path).open_for_training(config)
  (path / "lock").unlink()  # which lets nobody in
  with pytest.raises(errors.UserError, match="another run writes to"):
    directory_of(path).open_for_training(config)
  first.close()
  directory_of(path).open_for_training(config)


def _take_away(path, how):
  if how == "removed":
    shutil.rmtree(path)
  else:
    path.rename(path.with_name("elsewhere"))
  if how == "replaced":
    path.mkdir()


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_a_run_whose_directory_goes_writes_to_no_other(
  copied, monkeypatch, how
):
  path, config = copied
  config = configs.change(config, ["schedule.steps=480"])
  play = trainer.Trainer._round

  def played(self):
    play(self)
    if self._state.step == 400:
      _take_away(path, how)

  monkeypatch.setattr(trainer.Trainer, "_round", played)
  with pytest.raises(errors.UserError, match="moved, removed or replaced"):
    trainer.train(config, directory_of(path))
  assert not path.exists() or not list(path.iterdir())
  if how != "removed":
    step, warnings = restored_step(path.with_name("elsewhere"), config)
    assert step == 320 and not warnings


def test_a_directory_may_be_reached_by_another_link(copied, tmp_path):
  path, config = copied
  link = tmp_path / "link"
  link.symlink_to(path)
  directory = directory_of(link)
  directory.open_for_training(directory.as_begun(config))
  directory.require_there()
  link.unlink()
  link.symlink_to(tmp_path)
  with pytest.raises(errors.UserError, match="moved, removed or replaced"):
    directory.require_there()
  directory.close()


def test_what_changes_the_bits_is_told_or_refused(copied):
  path, config = copied
  file = path / "config.json"
  whole = json.loads(file.read_text())
  config = directory_of(path).as_begun(config)

  def noted(content, **options):
    file.write_text(json.dumps(content))
    told, directory = [], directory_of(path)
    try:
      directory.open_for_training(config, note=told.append, **options)
    finally:
      directory.close()
    return told

  assert noted(whole, strict=True) == []
  for group, name, value in (
    ("machine", "threads", 77),
    ("machine", "operations_at_a_time", 77),
    ("machine", "devices", "Abacus"),
    ("machine", "variables", "TF_ENABLE_ONEDNN_OPTS=0"),
    ("versions", "tensorflow", "2.0.0"),
    ("versions", "gymnasium", "0.1"),
  ):
    changed = json.loads(json.dumps(whole))
    changed[group][name] = value
    (told,) = noted(changed)
    assert f"{name}: {value} -> {whole[group][name]}" in told
    with pytest.raises(errors.UserError, match=f"{name}: {value} -> .*strict"):
      noted(changed, strict=True)
    assert json.loads(file.read_text()) == changed  # nothing was written
    del changed[group][name]  # an earlier version did not say
    changed["machine"]["cpus"] = 1000  # no bit depends on it
    assert noted(changed, strict=True) == []


def test_a_run_may_end_earlier_but_not_before_where_it_is(copied):
  path, config = copied  # at step 320 of 320
  begun = directory_of(path).as_begun(config)

  def open_with(steps):
    directory = directory_of(path)
    try:
      return directory.open_for_training(
        begun.replace(schedule=dict(steps=steps))
      )
    finally:
      directory.close()

  open_with(1000)
  for steps in (600, 320):  # still ahead, or just there
    open_with(steps)
    assert directory_of(path).config().schedule.steps == steps
    assert directory_of(path).config().schedule.horizon == 320
  open_with(1000)
  before = (path / "config.json").read_bytes()
  wanted = "is at step 320 of 1,000, past --steps 319; pass --steps 320 to end"
  with pytest.raises(errors.UserError, match=wanted) as raised:
    open_with(319)
  assert "\n" not in str(raised.value)
  assert (path / "config.json").read_bytes() == before


def test_other_peoples_directories_are_left_alone(tmp_path):
  (tmp_path / "thesis.tex").write_text("words")
  config = train_fixtures.small()
  with pytest.raises(errors.UserError, match="holds other files"):
    directory_of(tmp_path).open_for_training(config)
  with pytest.raises(errors.UserError, match="is not a run"):
    directory_of(tmp_path).config()


def test_a_misspelt_environment_leaves_no_directory(tmp_path):
  config = train_fixtures.small("environment.name=Braekout")
  with pytest.raises(errors.UserError, match="unknown environment"):
    trainer.train(config, directory_of(tmp_path / "run"))
  assert not (tmp_path / "run").exists()


def test_a_path_that_cannot_be_written_is_told(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(errors.UserError, match="cannot write to"):
    directory_of(tmp_path / "file" / "run").open_for_training(
      train_fixtures.small()
    )


def test_a_full_disk_leaves_the_checkpoint_before(copied):
  path, config = copied
  longer = configs.change(config, ["schedule.steps=640"])
  # No file may grow beyond 20 kB: the weights do not fit, as on a full disk.
  code = (
    "import resource, sys; sys.path.insert(0, 'tests/train');"
    "from tf_mmdrl.cli import main; import tf_mmdrl.cli.train_command;"
    "from tf_mmdrl.train import run_state;"
    "save = run_state.RunState.save;\n"
    "def limited(self):\n"
    "  resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
    "  save(self)\n"
    "run_state.RunState.save = limited\n"
    "settings = sys.argv[2:]\n"
    "flags = [x for s in settings for x in ('--set', s)]\n"
    "sys.exit(main.main(['train', '--run-dir', sys.argv[1], *flags]))"
  )
  settings = [f"{name}={value}" for name, value in configs.fields(longer)]
  done = subprocess.run(
    [sys.executable, "-c", code, str(path), *settings],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 2, done.stderr
  assert "cannot write the" in done.stderr.splitlines()[-1]
  assert not list((path / "checkpoints").glob(".tmp*"))
  assert restored_step(path, config) == (320, [])


@pytest.mark.parametrize("field", ["reward", "observation"])
def test_numbers_that_are_not_finite_stop_the_run(tmp_path, field):
  config = train_fixtures.small("environment.name=CartPole-v1")
  directory = directory_of(tmp_path)
  state = run_state.RunState(config, directory)
  environment = state.actors[0].environment
  train_fixtures.play(state, 4)
  steps = state.replay.num_steps
  step = environment.step

  def broken(actions):
    good = step(actions)
    bad = np.full_like(getattr(good, field), np.nan)
    return good._replace(**{field: bad})

  environment.step = broken
  with pytest.raises(errors.UserError, match=f"the {field} nan, at step 16"):
    train_fixtures.play(state, 1)
  assert state.replay.num_steps == steps  # it did not get into replay
  state.close()


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
  config = train_fixtures.small()
  state = run_state.RunState(config, directory_of(tmp_path))
  train_fixtures.play(state, 60)
  bias = state.agent.return_network.variables[-1]
  bias.assign(bias * np.nan)
  with pytest.raises(errors.UserError, match="train step 0.*step 240"):
    state.learner.learn(state.experience.take(0.4), state.step)
  state.close()


def test_the_description_of_a_run_is_complete(finished):
  path, config = finished
  content = json.loads((path / "config.json").read_text())
  wanted = config.replace(schedule={"horizon": config.schedule.steps})
  assert configs.from_json(content["config"]) == wanted
  assert content["versions"]["tensorflow"]
  machine = content["machine"]
  assert machine["cpus"] == os.cpu_count() >= machine["threads"] >= 1
  assert {"cpu", "cores", "system"} <= set(machine)


def test_a_lock_that_is_a_link_leads_nowhere(copied, tmp_path):
  path, config = copied
  mine = tmp_path / "mine"
  mine.write_text("precious")
  (path / "lock").unlink(missing_ok=True)
  (path / "lock").symlink_to(mine)
  with pytest.raises(errors.UserError, match="cannot write to.*link"):
    directory_of(path).open_for_training(config)
  assert mine.read_text() == "precious"


@pytest.mark.parametrize("who", [b"", b"\xff\xfe", b"\x1b[2J\n", b"1234\n"])
def test_who_holds_the_lock_is_told_if_it_says_so(tmp_path, who):
  first, second = directory_of(tmp_path), directory_of(tmp_path)
  config = train_fixtures.small()
  first.open_for_training(config)
  try:
    (tmp_path / "lock").write_bytes(who)
    with pytest.raises(
      errors.UserError, match="another run.* writes to"
    ) as raised:
      second.open_for_training(config)
    assert ("(process 1234)" in str(raised.value)) == (who == b"1234\n")
    assert str(raised.value).isprintable()
  finally:
    first.close()
    second.close()
