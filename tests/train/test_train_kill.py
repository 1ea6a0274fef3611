"""Runs that are killed outright, and go on."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import train_fixtures

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import runs

_ROOT = pathlib.Path(__file__).parents[2]


def start(path, config):
  settings = [f"{name}={value}" for name, value in configs.fields(config)]
  flags = [flag for text in settings for flag in ("--set", text)]
  command = [sys.executable, "-m", "tf_mmdrl", "train", "--run-dir", str(path)]
  # With all cores, also where a test has only one of them.
  environment = dict(os.environ)
  environment.pop("TF_NUM_INTRAOP_THREADS", None)
  return subprocess.Popen(
    [*command, *flags],
    cwd=_ROOT,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def send_when(process, condition, number):
  """Sends a signal as soon as the condition holds."""
  while process.poll() is None and not condition():
    time.sleep(0.001)
  if process.poll() is None:
    os.kill(process.pid, number)
  process.communicate()


def fingerprints(path):
  with runs.restored(path) as state:
    return state.fingerprints()


def check(tmp_path, config):
  whole, cut = tmp_path / "whole", tmp_path / "cut"
  process = start(whole, config)
  output, _ = process.communicate()
  assert process.returncode == 0, output
  checkpoints = cut / "checkpoints"

  def is_writing():
    return any(checkpoints.glob(".tmp-*"))

  def has_saved():
    return any(checkpoints.glob("0*"))

  process = start(cut, config)
  send_when(process, is_writing, signal.SIGKILL)
  assert process.returncode == -signal.SIGKILL
  process = start(cut, config)
  send_when(process, has_saved, signal.SIGTERM)
  assert process.returncode == 75
  process = start(cut, config)
  output, _ = process.communicate()
  assert process.returncode == 0, output
  assert fingerprints(whole) == fingerprints(cut)
  assert (whole / "metrics.csv").read_bytes() == (
    cut / "metrics.csv"
  ).read_bytes()


def test_a_killed_run_goes_on_as_if_it_had_not_been(tmp_path):
  check(tmp_path, train_fixtures.small("system.actors=2"))


@pytest.mark.slow
def test_a_killed_run_of_one_actor_goes_on_as_if_it_had_not_been(tmp_path):
  check(tmp_path, train_fixtures.small("replay.prioritized=true"))


@pytest.mark.slow
@pytest.mark.parametrize("actors", [1, 2])
def test_a_killed_atari_run_goes_on_as_if_it_had_not_been(tmp_path, actors):
  atari = ["environment.name=Pong", "environment.num_envs=2"]
  atari += [f"system.actors={actors}", "replay.prioritized=true"]
  check(tmp_path, train_fixtures.small(*atari))
