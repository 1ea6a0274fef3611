import os
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from tf_mmdrl.cli import doctor_command, main
from tf_mmdrl.core import exit_codes, optional
from tf_mmdrl.train import checkup, presets, speed


def test_it_says_what_this_machine_has(capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(
    optional, "is_there", lambda name: name not in ("tf2onnx", "orjson")
  )
  monkeypatch.setattr(checkup, "free_memory", lambda: 10**9)
  assert main.main(["doctor", "--no-speed"]) == exit_codes.OK
  out, err = capsys.readouterr()
  assert err == ""
  assert max(map(len, out.splitlines())) <= 80
  assert f"tensorflow {tf.__version__}" in out
  assert re.search(r"XLA +compiles\n", out)
  assert re.search(r"free memory +1.00 GB\n", out)
  # docs/replay.md: a million Atari steps take 7.2 GB.
  assert re.search(r"\natari +10,000,000 +7.2\d GB  no\n", out)
  assert re.search(r"\nquickstart +200,000 +0.0\d GB  yes\n", out)
  # What is learnt from data plays nothing whose speed could be measured.
  played = set(presets.PRESETS) - {presets.DATA}
  assert all(f"\n{name} " in out for name in played)
  plain = " ".join(out.split())
  assert "to do: for mmdrl serve, pip install 'tf-mmdrl[serve]'" in plain
  assert "to do: for exports as ONNX, pip install 'tf-mmdrl[onnx]'" in plain
  assert "preset paper keeps 7.23 GB of replay, more than the free mem" in plain
  assert "fewer than 1,000,000 steps" in plain
  assert "tf-mmdrl[plots]" not in plain and "nothing is missing" not in plain


def test_what_is_needed_and_broken_is_told_by_the_exit_code(
  capsys, monkeypatch
):
  monkeypatch.setattr(checkup, "xla_problem", lambda: "no kernel")
  monkeypatch.setattr(doctor_command, "_rooms", lambda *_, **__: _no_rooms())
  assert main.main(["doctor", "--no-speed"]) == exit_codes.BROKEN
  out = capsys.readouterr().out
  assert "broken: XLA does not compile here: no kernel; set system.xla" in out
  assert "broken: no games here\n" in out
  assert "broken: MinAtar" not in out  # an extra


def _no_rooms():
  rooms = {name: doctor_command.Room(1) for name in presets.PRESETS}
  rooms["atari"] = doctor_command.Room(problem="no games here")
  problem = "MinAtar needs pip install 'tf-mmdrl[minatar]'"
  return {**rooms, "minatar": doctor_command.Room(problem=problem)}


@pytest.mark.parametrize(
  "environ, driver, cuda, reason, advice",
  [
    ({}, False, True, "no NVIDIA driver", ""),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, True, True, "hides it", "unset CUDA"),
    (
      {"CUDA_VISIBLE_DEVICES": "0"},
      True,
      False,
      "without CUDA",
      "TensorFlow's",
    ),
    ({}, True, True, "CUDA libraries", "tensorflow[and-cuda]=="),
  ],
)
def test_why_there_is_no_gpu(environ, driver, cuda, reason, advice):
  found = checkup.no_gpu_because(environ, has_driver=driver, has_cuda=cuda)
  assert reason in found[0]
  assert advice in found[1] and bool(advice) == bool(found[1])


def test_a_run_takes_as_long_as_the_slower_of_play_and_learning():
  config = presets.get("quickstart")
  fast = speed.NetworkSpeed(update=1e-9, choice=1e-9)
  time_of = lambda found, step: speed.run_seconds(  # noqa: E731
    config, found, measured=config, env_step=step
  )
  # 200k steps of 16 environments; (200k - 5k) / 4 updates.
  assert time_of(fast, 1e-3) == pytest.approx(12.5)
  assert time_of(fast._replace(choice=2e-3), 1e-3) == pytest.approx(25)
  assert time_of(fast._replace(update=1e-3), 1e-4) == pytest.approx(48.75)
  doubled = config.replace(schedule=dict(batch_size=64))
  slow = fast._replace(update=1e-3)
  assert speed.run_seconds(
    doubled, slow, measured=config, env_step=1e-4
  ) == pytest.approx(97.5)


def test_extras_are_those_of_the_package():
  import importlib.metadata

  known = importlib.metadata.metadata("tf-mmdrl").get_all("Provides-Extra")
  assert set(checkup.EXTRAS) == set(known) - {"all", "dev", "reverb"}


@pytest.mark.slow
def test_the_speed_test_estimates_runs(tmp_path):
  done = subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", "doctor"],
    capture_output=True,
    text=True,
    cwd=tmp_path,
    env={**os.environ, "COLUMNS": "80"},
  )
  assert done.returncode == 0 and done.stderr == ""
  assert max(map(len, done.stdout.splitlines())) <= 80
  assert re.search(r"Nature network .*: update \d+\.\d ms", done.stdout)
  row = r"\natari +10,000,000 +7.2\d GB  \w+ +[\d,]+ +[\d.]+ (days|h)\n"
  assert re.search(row, done.stdout)


def _group(path, **files):
  path.mkdir(parents=True, exist_ok=True)
  for name, content in files.items():
    (path / f"memory.{name}").write_text(f"{content}\n")


_V1 = dict(usage_in_bytes=6_000, stat="total_inactive_file 0")


@pytest.mark.parametrize(
  "group, wanted",
  [
    ("0::/a/b\n", 3_000),  # the outer group has less room than the inner one
    ("0::/a\n", 3_000),
    ("0::/\n", 1_000 * 1024),  # no limit
    ("0::/elsewhere\n", 1_000 * 1024),
    ("7:cpu,memory:/c\n6:pids:/a\n", 2_000),
    ("7:memory:/none\n", 1_000 * 1024),
    ("7:memory:/full\n", 0),
    ("", 1_000 * 1024),
  ],
)
def test_a_container_has_less_memory_than_its_machine(
  monkeypatch, tmp_path, group, wanted
):
  groups = tmp_path / "groups"
  _group(groups, max="max", current=5_000)
  stat = "anon 4000\ninactive_file 1000"
  _group(groups / "a", max=6_000, current=4_000, stat=stat)
  _group(groups / "a" / "b", max=9_000, current=4_000, stat=stat)
  _group(groups / "memory" / "c", limit_in_bytes=8_000, **_V1)
  _group(groups / "memory" / "none", limit_in_bytes=2**63 - 4096, **_V1)
  _group(groups / "memory" / "full", limit_in_bytes=5_000, **_V1)
  for name, text in [("_GROUP", group), ("_MEMINFO", "MemAvailable: 1000 kB")]:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(checkup, name, tmp_path / name)
  monkeypatch.setattr(checkup, "_GROUPS", groups)
  assert checkup.free_memory() == wanted


def test_where_the_system_does_not_tell_memory_is_not_known(
  monkeypatch, tmp_path
):
  for name in ("_GROUP", "_MEMINFO", "_GROUPS"):
    monkeypatch.setattr(checkup, name, tmp_path / "none")
  assert checkup.free_memory() is None


def test_a_network_that_does_not_train_here_is_broken(capsys, monkeypatch):
  def fail(*_):
    raise tf.errors.ResourceExhaustedError(None, None, "OOM\nmore")

  monkeypatch.setattr(speed, "network", fail)
  found, failed = doctor_command._speeds(
    {name: presets.get(name) for name in presets.PRESETS}
  )
  assert found == {} and len(failed) == 2
  assert failed[0] == "a Nature network does not train here: OOM"
  assert "Nature network: not measured, it fails" in capsys.readouterr().out


@pytest.mark.parametrize("text, wanted", [("a\nb", "a"), ("", "ValueError")])
def test_what_xla_says_is_one_line(monkeypatch, text, wanted):
  def fail(*_, **__):
    raise ValueError(text)

  monkeypatch.setattr(tf, "function", fail)
  assert checkup.xla_problem() == wanted
