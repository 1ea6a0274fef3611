"""Counts how often a round of training calls from one file into another.

  python benchmarks/file_switches.py
  python benchmarks/file_switches.py --files

A round is 4 steps of 4 games of MinAtar Breakout and 4 updates. Calls are
counted over ten rounds that learn: those of Python functions of this library,
from the nearest caller that is in another of its files. What TensorFlow has
compiled is not seen.
"""

import argparse
import collections
import pathlib
import sys
import tempfile
import threading

import tf_mmdrl
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets, run_directory, trainer

ROOT = str(pathlib.Path(tf_mmdrl.__file__).parent) + "/"
FIRST, LAST = 300, 460  # steps between which rounds are counted
CHANGES = """
  environment.num_envs=4 environment.max_episode_steps=50 agent.n_step=1
  network.num_particles=5 replay.capacity=2000 schedule.steps=480
  schedule.learning_starts=200 schedule.collect_steps=4 schedule.batch_size=8
  schedule.target_period=64 schedule.epsilon_steps=200 evaluation.period=100000
  evaluation.episodes=1 evaluation.num_envs=1 system.checkpoint_period=100000
  system.log_period=100000 system.xla=off
"""


class Counter:
  """Counts calls between files while it is on."""

  def __init__(self):
    self.on = False
    self.calls = collections.Counter()

  def __call__(self, frame, event, _):
    """What `sys.setprofile` calls."""
    if not self.on or event != "call":
      return
    called, caller = frame.f_code.co_filename, frame.f_back
    if not called.startswith(ROOT):
      return
    while caller and not caller.f_code.co_filename.startswith(ROOT):
      caller = caller.f_back
    calling = caller.f_code.co_filename if caller else f"{ROOT}thread"
    if calling != called:
      self.calls[calling[len(ROOT) :], called[len(ROOT) :]] += 1


def main():
  """Trains, and prints calls a round, by pairs of rooms and in all."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument(
    "--files", action="store_true", help="pairs of files as well"
  )
  files = parser.parse_args().files
  counter, rounds = Counter(), 0
  play_round = trainer.Trainer._round

  def counted(self):
    nonlocal rounds
    counter.on = FIRST <= self._state.step < LAST
    rounds += counter.on
    play_round(self)
    counter.on = False

  trainer.Trainer._round = counted
  threading.setprofile(counter)
  sys.setprofile(counter)
  config = configs.change(presets.get("quickstart"), CHANGES.split())
  with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "run"
    trainer.train(config, run_directory.RunDirectory(path))
  sys.setprofile(None)
  if files:
    for (calling, called), count in counter.calls.most_common():
      print(f"{count / rounds:6.1f}  {calling} -> {called}")
  rooms = collections.Counter()
  for (calling, called), count in counter.calls.items():
    rooms[calling.split("/")[0], called.split("/")[0]] += count
  for (calling, called), count in rooms.most_common():
    print(f"{count / rounds:6.1f}  {calling} -> {called}")
  print(f"{sum(rooms.values()) / rounds:6.1f}  in all")


if __name__ == "__main__":
  main()
