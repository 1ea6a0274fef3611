"""Compares a run's records with what its newest checkpoint says of them.

`config.json` and `metrics.csv` are for people to read, and people may change
them. A checkpoint has both, under its checksums. Needs no TensorFlow.
"""

import itertools
import json
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional

from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.core.run_files import RunFiles

STATE = "state.json"
METRICS = "metrics.csv"
MANIFEST = "manifest.json"
# What may differ when a run goes on: a longer run is the same run, and one that
# cannot go on exactly may do so with new episodes.
_MAY_CHANGE = ("schedule.steps", "environment.resume")
_ACTORS = "system.actors"


class Record(NamedTuple):
  """What a checkpoint says.

  Attributes:
    step: the step at which it was made.
    settings: the settings by group, as config.json has them; None if the
      version that made it did not keep them.
    metrics: the file at that step.
  """

  step: int
  settings: Optional[Dict[str, Any]]
  metrics: bytes


def checkpoints(directory: pathlib.Path) -> Dict[int, pathlib.Path]:
  """The checkpoints in a directory by step, newest first; damaged ones too."""
  if not directory.is_dir():
    return {}
  steps = {
    step: path
    for path in directory.iterdir()
    if (step := step_of(path.name)) is not None and path.is_dir()
  }
  return {step: steps[step] for step in sorted(steps, reverse=True)}


def name_of(step: int) -> str:
  """What the directory of a checkpoint is called."""
  return f"{step:012d}"


def step_of(name: str) -> Optional[int]:
  """The step of a checkpoint's directory; None if it has another name."""
  if not name.isdecimal():
    return None
  step = int(name)
  # "64" and digits of other scripts are other names.
  return step if name == name_of(step) else None


def manifest(checkpoint: pathlib.Path) -> Dict[str, str]:
  """The SHA-256 of each file of a checkpoint, by name."""
  files = whole_files.read_json(checkpoint / MANIFEST).get("files")
  if not isinstance(files, dict):
    raise whole_files.DamagedFileError(
      f"saved file {checkpoint / MANIFEST} is damaged: it does not list the"
      " files of a checkpoint; go back to an older checkpoint"
    )
  return files


def read(checkpoint: pathlib.Path, name: str) -> bytes:
  """A file of a checkpoint, if it is as it was written."""
  files = manifest(checkpoint)
  if name not in files:
    raise whole_files.DamagedFileError(
      f"saved file {checkpoint / name} is missing; go back to an older"
      " checkpoint"
    )
  return whole_files.read(checkpoint / name, files[name])


def verify(checkpoint: pathlib.Path) -> pathlib.Path:
  """The checkpoint, if every file of it is as it was written."""
  for name, sha256 in manifest(checkpoint).items():
    whole_files.read(checkpoint / name, sha256)
  return checkpoint


def newest(files: RunFiles) -> Optional[Record]:
  """The record in the newest whole checkpoint of a run, if it has any."""
  for step, path in checkpoints(files.checkpoints).items():
    try:
      content = json.loads(read(path, STATE))["content"]
      return Record(step, content.get("config"), read(path, METRICS))
    except (ValueError, KeyError, TypeError, AttributeError):
      continue  # damaged, or of a version that wrote it otherwise
  return None


def what_is_left(files: RunFiles) -> str:
  """What the command that trains a run goes on with, if it ends now."""
  newest_step = next(iter(checkpoints(files.checkpoints)), None)
  if newest_step is None:
    return "there is no checkpoint yet, so the same command begins anew"
  return f"the same command goes on at the checkpoint of step {newest_step:,}"


def edits(files: RunFiles) -> List[str]:
  """What settings and metrics were changed by hand, a text for each file."""
  found = []
  for check in (check_config, check_metrics):
    try:
      check(files)
    except errors.UserError as error:
      found.append(str(error))
  return found


def may_change(name: str, order: Any) -> bool:
  """Whether a setting may be another one when a run goes on.

  Args:
    name: of the setting.
    order: the run's `system.order`; in free order actors come and go.
  """
  return name in _MAY_CHANGE or (name == _ACTORS and order == "free")


def check_config(files: RunFiles) -> None:
  """Raises if a setting is another than when the checkpoint was made."""
  found = newest(files)
  if found is None or found.settings is None:
    return
  now = files.settings()
  changed: List[str] = []
  for group, settings in found.settings.items():
    for field, value in settings.items():
      name = f"{group}.{field}"
      if (
        not may_change(name, now.get("system.order"))
        and now.get(name, value) != value
      ):
        shown = f"{json.dumps(value)} -> {json.dumps(now[name])}"
        changed.append(f"{name}: {shown}")
  if changed:
    raise errors.UserError(
      f"{str(files.config_file)!r} was changed after the checkpoint of step"
      f" {found.step}: {'; '.join(changed)}; put it back"
    )


def check_metrics(files: RunFiles) -> None:
  """Raises if a row is another than when the checkpoint was made.

  Rows that came later may follow, for the run may have gone on since then.
  """
  found = newest(files)
  if found is None:
    return
  now = files.metrics.read_bytes() if files.metrics.exists() else b""
  if now.startswith(found.metrics):
    line = _line_that_cannot_follow(files, found)
  else:
    both = found.metrics.split(b"\n"), now.split(b"\n")
    pairs = enumerate(itertools.zip_longest(*both), 1)
    line = next(i for i, (old, new) in pairs if old != new)
  if line is None:
    return
  raise errors.UserError(
    f"{str(files.metrics)!r} was changed in line {line} after the checkpoint of"
    f" step {found.step}; mmdrl train puts it back when the run goes on"
  )


def _line_that_cannot_follow(files: RunFiles, found: Record) -> Optional[int]:
  """The first line after those of a checkpoint that training did not write."""
  settings, step = files.settings(), float(found.step)
  steps = settings.get("schedule.steps")
  # With phases that end with a game a run may go past its last step.
  is_over = (
    isinstance(steps, int)
    and step >= steps
    and settings.get("evaluation.at", "step") == "step"
  )
  rows = files.rows()
  for line, row in enumerate(rows, 2):
    if line > found.metrics.count(b"\n"):
      later = row["step"] or 0.0
      if is_over or later <= step:
        return line
      step = later
  return None
