"""The directory of a run as training sees it: its settings and its lock.

What only reads a run, and needs none of its settings checked, uses
`core.run_files`.
"""

import fcntl
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
from typing import (
  Any,
  Callable,
  Dict,
  Iterator,
  NamedTuple,
  Optional,
  Tuple,
)

from tf_mmdrl import replay, version
from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.core.run_files import RunFiles
from tf_mmdrl.train import checkpoints
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import machine as machines

_PACKAGES = ("tensorflow", "tf-agents", "tf-keras", "numpy", "ale-py")
_FORMAT = 2  # of config.json; 1 was version 0.1's
# A longer run is the same run, gone on with.
_MAY_CHANGE = ("schedule.steps",)


class FoundCheckpoint(NamedTuple):
  """A checkpoint of a run.

  Attributes:
    step: the step of the run at which it was made.
    damage: what is wrong with it, or None if it is whole.
  """

  step: int
  damage: Optional[str]


class RunDirectory(RunFiles):
  """The files of a run, its settings, and who may write."""

  def __init__(self, path: pathlib.Path):
    super().__init__(path)
    self._lock: Optional[int] = None

  def surroundings(self) -> Iterator[Tuple[str, Any]]:
    """Where it was last trained: `versions.NAME`, `machine.NAME`, the commit.

    An older version's run has fewer of them.
    """
    content = self.description()
    for group in ("versions", "machine"):
      for name, value in content.get(group, {}).items():
        yield f"{group}.{name}", value
    yield "git_commit", content.get("git_commit")

  def config(self) -> configs.Config:
    """The run's configuration; an error if there is no run here."""
    content = self.description()
    try:
      if content.get("format", 1) > _FORMAT:
        raise errors.UserError(
          f"the run in {str(self.path)!r} was made by tf-mmdrl"
          f" {content['versions']['tf-mmdrl']}, in a later format than this"
          " version reads; install that one"
        )
      return configs.from_json(content["config"])
    except errors.UserError:
      raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
      raise self.unreadable(error) from None

  def list_checkpoints(self) -> Iterator[FoundCheckpoint]:
    """The checkpoints, newest first, each verified (its replay is not)."""
    there = checkpoints.Checkpoints(self.checkpoints)
    for step in there.steps():
      try:
        there.verify(step)
        yield FoundCheckpoint(step, None)
      except replay.DamagedFileError as error:
        yield FoundCheckpoint(step, str(error))

  def as_begun(
    self,
    config: configs.Config,
    note: Callable[[str], None] = lambda text: None,
  ) -> configs.Config:
    """The same, with what was settled when the run began.

    Schedules are as long as they were then, and settings that did not exist
    have their defaults, whatever a preset has for them now.

    Args:
      config: what a user wants, completed; a longer run, perhaps.
      note: told of each setting that did not exist when the run began.

    Returns:
      The configuration with `schedule.horizon` set.
    """
    if not self.config_file.exists():
      return config.replace(schedule={"horizon": config.horizon})
    before = self.config()
    self._refuse_first_format()
    before = before.completed()
    values = dict(configs.fields(before))
    content = self.description()["config"]
    later = [
      name
      for name in configs.missing(content, before)
      if name != "schedule.horizon"
    ]
    for name in later:
      note(
        f"the run is older than the setting {name}, which is {values[name]}"
        " for it"
      )
    config = configs.change(config, [f"{n}={values[n]}" for n in later])
    horizon = config.schedule.horizon or before.horizon
    return config.replace(schedule={"horizon": horizon})

  def open_for_training(
    self, config: configs.Config
  ) -> Optional[configs.Config]:
    """Claims the directory, and writes or compares the configuration.

    Args:
      config: of the run.

    Returns:
      The configuration that the run had before, if it goes on.
    """
    before = None
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      self._claim()
      if self.config_file.exists():
        config = self.as_begun(config)
        before = self.config().completed()
        _require_same(self.as_begun(before), config)
        self._refuse_what_is_past(before.schedule.steps, config.schedule.steps)
      elif any(path.name != "lock" for path in self.path.iterdir()):
        raise errors.UserError(
          f"{str(self.path)!r} holds other files and no run; pass an empty or"
          " new --run-dir"
        )
      description = {
        "format": _FORMAT,
        "config": configs.to_json(config),
        **surroundings(),
      }
      text = json.dumps(description, indent=2) + "\n"
      whole_files.write(self.config_file, text.encode())
      return before
    except OSError as error:
      raise errors.UserError(
        f"cannot write to {str(self.path)!r}: {error.strerror}; pass another"
        " --run-dir"
      ) from None

  def _refuse_first_format(self) -> None:
    content = self.description()
    if content.get("format", 1) < _FORMAT:
      raise errors.UserError(
        f"the run in {str(self.path)!r} was made by tf-mmdrl 0.1 (commit"
        f" {content.get('git_commit')}), which alone can go on with it; here it"
        " can be evaluated, watched, served and reported. To train anew, pass"
        " another --run-dir"
      )

  def _refuse_what_is_past(self, before: int, steps: int) -> None:
    """Raises if a run is to end earlier than where it is already.

    Args:
      before: the steps that it was to have; they may be asked for again, for a
        run ends with the round that reaches them.
      steps: those it is to have now.
    """
    if steps == before:
      return
    whole = (
      found.step for found in self.list_checkpoints() if not found.damage
    )
    step = next(whole, 0)
    if steps < step:
      raise errors.UserError(
        f"the run in {str(self.path)!r} is at step {step:,} of {before:,}, past"
        f" --steps {steps}; pass --steps {step} to end it there, or more to go"
        " on"
      )

  def close(self) -> None:
    """Lets others write."""
    if self._lock is not None:
      os.close(self._lock)
      self._lock = None

  def _claim(self) -> None:
    """Locks the directory; the system itself unlocks it after a crash."""
    lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      owner = os.read(lock, 20).decode().strip()
      os.close(lock)
      raise errors.UserError(
        f"another run (process {owner}) writes to {str(self.path)!r}; wait for"
        " it or pass another --run-dir"
      ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    self._lock = lock


def _require_same(before: configs.Config, now: configs.Config) -> None:
  changed = [
    line
    for line in configs.differences(before, now)
    if line.split(":")[0] not in _MAY_CHANGE
  ]
  if changed:
    raise errors.UserError(
      f"this directory holds a run with another configuration: "
      f"{'; '.join(changed)}; give it the same settings, or pass another"
      " --run-dir"
    )


def surroundings() -> Dict[str, Any]:
  """`versions`, `git_commit` and `machine`, as JSON values."""
  versions = {"tf-mmdrl": version.__version__, "python": sys.version.split()[0]}
  for package in _PACKAGES:
    try:
      versions[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      versions[package] = "not installed"
  return {
    "versions": versions,
    "git_commit": _commit(),
    "machine": machines.describe(),
  }


def _commit() -> Optional[str]:
  """The commit of this library's sources, if they are a checkout."""
  try:
    here = pathlib.Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5)
  except (OSError, subprocess.TimeoutExpired):
    return None
  return done.stdout.strip() or None
