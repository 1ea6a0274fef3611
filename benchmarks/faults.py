"""Kills a run at random moments and compares it with one that was not cut.

  python benchmarks/faults.py --kills 20 [--env Pong] [--steps 20000]

Each kill is SIGKILL, every second one aimed at the moment a checkpoint is being
written. The run goes on by the same command each time. At the end the
fingerprints of both runs must agree in every part.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tf_mmdrl.train import runs


def settings(args):
  """Small evaluations, and three checkpoints for each kill."""
  period = max(64, args.steps // (3 * args.kills))
  return [
    f"schedule.learning_starts={min(2000, args.steps // 4)}",
    f"evaluation.period={args.steps // 4}",
    "evaluation.episodes=4",
    "evaluation.num_envs=4",
    "environment.max_episode_steps=500",
    f"environment.rebuild_period={args.steps // 3}",
    f"system.checkpoint_period={period}",
    f"system.log_period={period}",
  ]


def start(path, args):
  """The training command as a process."""
  command = [sys.executable, "-m", "tf_mmdrl", "train", "--run-dir", str(path)]
  command += ["--env", args.env, "--steps", str(args.steps)]
  command += [flag for text in settings(args) for flag in ("--set", text)]
  return subprocess.Popen(
    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
  )


def newest(path):
  """The step of the newest checkpoint, 0 if there is none."""
  found = (path / "checkpoints").glob("0*")
  return max((int(checkpoint.name) for checkpoint in found), default=0)


def kill(process, path, generator, while_writing):
  """Kills the process after it has made progress; whether it was in time."""
  before = newest(path)
  while process.poll() is None and newest(path) == before:
    time.sleep(0.01)  # at least one more checkpoint, so that the run ends
  if while_writing:
    checkpoints = path / "checkpoints"
    while process.poll() is None and not any(checkpoints.glob(".tmp-*")):
      time.sleep(0.0005)
  else:
    time.sleep(generator.uniform(0, 2))
  process.kill()
  return process.wait() == -signal.SIGKILL


def main():
  """Prints a line for each kill and the verdict; 1 if the runs differ."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--kills", type=int, default=20)
  parser.add_argument("--env", default="MinAtar/Breakout")
  parser.add_argument("--steps", type=int, default=20_000)
  parser.add_argument("--seed", type=int, default=0)
  args = parser.parse_args()
  generator = random.Random(args.seed)
  with tempfile.TemporaryDirectory() as folder:
    whole, cut = pathlib.Path(folder, "whole"), pathlib.Path(folder, "cut")
    assert start(whole, args).wait() == 0, "the uncut run failed"
    kills = 0
    for attempt in range(args.kills):
      process = start(cut, args)
      kills += kill(process, cut, generator, while_writing=attempt % 2)
      print(f"cut {attempt + 1}: newest checkpoint {newest(cut)}")
    assert start(cut, args).wait() == 0, "the last part failed"
    prints = []
    for path in (whole, cut):
      with runs.restored(path) as state:
        prints.append(state.fingerprints())
  for part, digest in prints[0].items():
    same = "same" if digest == prints[1][part] else "DIFFERENT"
    print(f"{part:26} {same}  {digest[:16]}")
  print(f"{kills} kills in {args.steps} steps of {args.env}")
  return int(prints[0] != prints[1])


if __name__ == "__main__":
  sys.exit(main())
