"""The directory of a run as training sees it: its settings and its lock.

What only reads a run, and needs none of its settings checked, uses
`core.run_files`.
"""

import contextlib
import fcntl
import json
import os
import pathlib
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  Iterator,
  List,
  NamedTuple,
  Optional,
)

from tf_mmdrl import replay
from tf_mmdrl.core import errors, run_records, whole_files
from tf_mmdrl.core.run_files import RunFiles
from tf_mmdrl.train import checkpoints, left_open
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import machine as machines

_FORMAT = 2  # of config.json; 1 was version 0.1's


class FoundCheckpoint(NamedTuple):
  """A checkpoint of a run.

  Attributes:
    step: the step of the run at which it was made.
    damage: what is wrong with it, or None if it is whole.
  """

  step: int
  damage: Optional[str]


class RunDirectory(RunFiles):
  """The files of a run, its settings, and who may write.

  A directory is data: a module that its settings name is imported only if it is
  among `imports`, which is for a user to say.

  Attributes:
    imports: modules that may be imported.
  """

  def __init__(self, path: pathlib.Path, imports: Iterable[str] = ()):
    super().__init__(path)
    self.imports = set(imports)
    self._locks: List[int] = []

  def config(self) -> configs.Config:
    """The run's configuration; an error if there is no run here."""
    config = self._read_config()
    configs.refuse_imports(config, self.imports)
    run_records.check_config(self)
    return config

  def _read_config(self) -> configs.Config:
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
    """The configuration with what was settled when the run began.

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

  def as_left_open(
    self,
    config: configs.Config,
    words: left_open.Words,
    note: Callable[[str], None],
  ) -> configs.Config:
    """The configuration with what words leave open as the run began.

    Args:
      config: what the words stand for, completed.
      words: what a user typed.
      note: told of settings that have other defaults since then.

    Returns:
      The configuration; the same if there is no run here to go on with.
    """
    if not self.config_file.exists():
      return config
    before, description = self.config(), self.description()
    if description.get("format", 1) < _FORMAT:
      return config  # nothing goes on with it
    then = left_open.of_record(description)
    return left_open.as_begun(before.completed(), config, then, words, note)

  def open_for_training(
    self,
    config: configs.Config,
    *,
    strict: bool = False,
    words: Optional[left_open.Words] = None,
    note: Callable[[str], None] = lambda text: None,
  ) -> Optional[configs.Config]:
    """Claims the directory, and writes or compares the configuration.

    Args:
      config: the config of the run.
      strict: whether to refuse a run that would go on with other bits, because
        another machine or another version computes it.
      words: what the config was typed as, to be kept with it.
      note: told of it otherwise.

    Returns:
      The configuration that the run had before, if it goes on.
    """
    around = machines.surroundings()
    before, old_words = None, None
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      if not self._locks:
        self._claim()
      if self.config_file.exists():
        config = self.as_begun(config)
        before = self.config().completed()
        old_words = left_open.of_record(self.description())
        _require_same(self.as_begun(before), config)
        self._refuse_what_is_past(before.schedule.steps, config.schedule.steps)
        self._compare_bits(around, strict, note)
      elif any(path.name != "lock" for path in self.path.iterdir()):
        raise errors.UserError(
          f"{str(self.path)!r} holds other files and no run; pass an empty or"
          " new --run-dir"
        )
      description = {
        "format": _FORMAT,
        "config": configs.to_json(config),
        **left_open.record(old_words, words),
        **around,
      }
      text = json.dumps(description, indent=2) + "\n"
      whole_files.write(self.config_file, text.encode())
      return before
    except OSError as error:
      raise self._unwritable(error) from None

  @contextlib.contextmanager
  def claimed(self) -> Iterator[None]:
    """Keeps others out while the context lasts, if the directory is there.

    For what takes long before `open_for_training`, which makes the directory.
    """
    try:
      if self.path.exists():
        self._claim()
    except OSError as error:
      raise self._unwritable(error) from None
    try:
      yield
    finally:
      self.close()

  def _unwritable(self, error: OSError) -> errors.UserError:
    return errors.UserError(
      f"cannot write to {str(self.path)!r}: {error.strerror}; pass another"
      " --run-dir"
    )

  def _compare_bits(
    self,
    around: Dict[str, Any],
    strict: bool,
    note: Callable[[str], None],
  ) -> None:
    changes = machines.changes_of_bits(self.description(), around)
    if not changes:
      return
    if strict:
      raise errors.UserError(
        f"the run was computed with others: {'; '.join(changes)}; go on with"
        " the same, or without --strict"
      )
    note(
      f"the run was computed with others ({'; '.join(changes)}), so its last"
      " bits will differ from those of a run that was not stopped; --strict"
      " refuses this"
    )

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

  def require_there(self) -> None:
    """Raises if the directory that was claimed has another name by now.

    What would be written under its old name would be half a run, or part of
    somebody else's.
    """
    if not self._locks:
      return
    ours = os.fstat(self._locks[1])
    try:
      there = os.stat(self.path)
      is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
    except OSError:
      is_ours = False
    if not is_ours:
      raise errors.UserError(
        f"{str(self.path)!r} was moved, removed or replaced while the run went"
        " on. Nothing more was written to it; where it is now the run can go"
        " on at its last checkpoint, with --run-dir"
      )

  def close(self) -> None:
    """Lets others write."""
    for lock in self._locks:
      os.close(lock)
    self._locks.clear()

  def _claim(self) -> None:
    """Locks the directory; the system itself unlocks it after a crash.

    The file `lock` says who writes. Who deletes it does not get in: the
    directory itself is locked, too, where the file system can do that.
    """
    # A link would lead to a file that is none of ours, and is written to.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    file = os.open(self.path / "lock", flags, 0o644)
    self._locks = [file, os.open(self.path, os.O_RDONLY)]
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      _lock_directory(self._locks[1])
    except BlockingIOError:
      owner = os.read(file, 20).strip()
      self.close()
      process = f" (process {int(owner)})" if owner.isdigit() else ""
      raise errors.UserError(
        f"another run{process} writes to {str(self.path)!r}; wait for it or"
        " pass another --run-dir"
      ) from None
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)


def _lock_directory(descriptor: int) -> None:
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    raise
  except OSError:  # a network's file system may lock files only
    pass


def _require_same(before: configs.Config, now: configs.Config) -> None:
  changed = [
    line
    for line in configs.differences(before, now)
    if not run_records.may_change(line.split(":")[0], now.system.order)
  ]
  if changed:
    raise errors.UserError(
      f"this directory holds a run with another configuration: "
      f"{'; '.join(changed)}; give it the same settings, or pass another"
      " --run-dir"
    )
