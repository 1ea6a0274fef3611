"""`mmdrl train --dry-run`: what a run would be, need and take."""

import pathlib
from typing import List, Tuple

from tf_mmdrl.cli import output
from tf_mmdrl.core import run_files, run_records
from tf_mmdrl.train import config as configs

_SECONDS = 2.0  # of the speed test, besides the time to compile


def show(config: configs.Config, path: pathlib.Path) -> None:
  """Prints the settings, then what the run needs; writes nothing.

  Args:
    config: the run's, completed.
    path: where it would be.
  """
  from tf_mmdrl.train import checkup, factories, speed

  for name, value in configs.fields(config):
    print(f"{name}={value}")
  env = factories.environment(config)
  try:
    replay = checkup.replay_bytes(config, env)
    env_step = speed.environment(env, _SECONDS / 4)
  finally:
    env.close()
  found = speed.network(config, _SECONDS)
  seconds = speed.run_seconds(config, found, measured=config, env_step=env_step)
  memory = checkup.free_memory()
  free = "not known" if memory is None else output.gigabytes(memory)
  rows: List[Tuple[str, str]] = [
    ("run", f"{path}, {_state(path)}"),
    (
      "memory",
      f"{output.gigabytes(replay)} of replay when it is full, besides about"
      f" 1 GB; free: {free}",
    ),
    (
      "disk",
      f"{output.gigabytes(replay)} of replay in checkpoints; free:"
      f" {output.gigabytes(checkup.free_disk())} in this directory",
    ),
    (
      "speed",
      f"an update takes {found.update * 1e3:.1f} ms, playing gives"
      f" {config.environment.num_envs / found.choice:,.0f} steps/s",
    ),
    (
      "time",
      f"at least {output.duration(seconds)} for {config.schedule.steps:,}"
      " steps, without evaluations",
    ),
  ]
  print()
  print(*output.two_columns(rows), sep="\n")


def _state(path: pathlib.Path) -> str:
  files = run_files.RunFiles(path)
  if not files.config_file.exists():
    return "which would be new"
  steps = run_records.checkpoints(files.checkpoints)
  return f"which would go on at step {max(steps, default=0):,}"
