"""Runs `mmdrl train` on two virtual CPUs; run by a test.

  python mirrored_run.py DIRECTORY

One device with the whole batch, two with half of it each, and the two again.
"""

import csv
import pathlib
import sys

import tf_mmdrl  # noqa: F401  isort: skip
import numpy as np
import tensorflow as tf

from tf_mmdrl.cli import main as cli

_SETTINGS = (
  "environment.num_envs=4",
  "network.num_particles=5",
  "replay.capacity=2000",
  "schedule.steps=400",
  "schedule.learning_starts=200",
  "schedule.collect_steps=4",
  "schedule.target_period=64",
  "schedule.batch_size=8",
  "evaluation.episodes=2",
  "evaluation.num_envs=2",
  "environment.max_episode_steps=50",
  "system.checkpoint_period=400",
  "system.log_period=16",
  "system.xla=off",
)


def run(directory: pathlib.Path, *changes: str) -> pathlib.Path:
  """A run, by the command line."""
  words = ["train", "--env", "CartPole-v1", "--preset", "classic"]
  for change in (*_SETTINGS, *changes):
    words += ["--set", change]
  code = cli.main([*words, "--run-dir", str(directory)])
  assert code == 0, code
  return directory


def losses(directory: pathlib.Path) -> np.ndarray:
  """The losses of a run, in order."""
  with (directory / "metrics.csv").open() as file:
    rows = [row["loss"] for row in csv.DictReader(file)]
  return np.array([float(loss) for loss in rows if loss])


def main(directory: pathlib.Path) -> None:
  """Compares the three."""
  tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
  )
  one = losses(run(directory / "one"))
  both = losses(run(directory / "both", "system.devices=all"))
  again = losses(run(directory / "again", "system.devices=all"))
  assert len(one) >= 8
  np.testing.assert_allclose(both, one, rtol=1e-3)
  np.testing.assert_array_equal(both, again)
  print("devices agree", one[:3], both[:3])
  words = ["--set", "schedule.batch_size=9", "--set", "system.devices=all"]
  assert cli.main(["train", "--run-dir", str(directory / "odd"), *words]) == 2


if __name__ == "__main__":
  main(pathlib.Path(sys.argv[1]))
