"""Learning on all devices, and what TensorFlow takes of them."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures as fixtures

from tf_mmdrl.core import errors
from tf_mmdrl.train import devices


def test_two_devices_learn_as_one(tmp_path):
  """`mmdrl train` on two virtual CPUs, in a process of its own."""
  script = pathlib.Path(__file__).parent / "mirrored_run.py"
  done = subprocess.run(
    [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
  assert "devices agree" in done.stdout
  assert "schedule.batch_size must be a multiple of that, got 9" in done.stderr


def test_one_device_is_tensorflows_default():
  for name in ("one", "all"):  # this process sees one CPU
    config = fixtures.small(f"system.devices={name}")
    assert devices.strategy(config) is tf.distribute.get_strategy()


@pytest.mark.parametrize("wanted", [True, False])
def test_memory_grows_on_every_gpu_if_wanted(monkeypatch, wanted):
  """There is no GPU here: what TensorFlow would be told."""
  told = []
  monkeypatch.setattr(
    tf.config, "list_physical_devices", lambda kind: [f"{kind}:0", f"{kind}:1"]
  )
  monkeypatch.setattr(
    tf.config.experimental,
    "set_memory_growth",
    lambda *args: told.append(args),
  )
  devices.configure(fixtures.small(f"system.memory_growth={wanted}".lower()))
  assert told == ([("GPU:0", True), ("GPU:1", True)] if wanted else [])


def test_memory_that_is_taken_does_not_grow(monkeypatch):
  def taken(*unused):
    raise RuntimeError("Physical devices cannot be modified")

  monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: ["GPU:0"])
  monkeypatch.setattr(tf.config.experimental, "set_memory_growth", taken)
  with pytest.raises(errors.UserError, match="comes too late"):
    devices.configure(fixtures.small("system.memory_growth=true"))


@pytest.mark.slow
def test_mixed_precision_learns(tmp_path):
  """A run in bfloat16, in a process of its own: the policy is the process'."""
  words = ["train", "--env", "CartPole-v1", "--preset", "classic"]
  words += ["--mixed-precision", "--run-dir", str(tmp_path / "run")]
  for change in (
    "schedule.steps=400",
    "schedule.learning_starts=200",
    "evaluation.episodes=2",
  ):
    words += ["--set", change]
  done = subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", *words], capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr[-3000:]
  table = np.genfromtxt(
    tmp_path / "run" / "metrics.csv", delimiter=",", names=True
  )
  losses = np.atleast_1d(table["loss"])
  losses = losses[np.isfinite(losses)]
  assert len(losses) and np.all(losses > 0)
