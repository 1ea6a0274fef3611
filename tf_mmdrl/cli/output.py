"""The directory a command writes to, and its tables."""

import csv
import dataclasses
import pathlib
from typing import Any, Sequence

from tf_mmdrl.core import errors


def directory(path: str) -> pathlib.Path:
  """Makes the directory, with its parents; checks that files can be made."""
  made = pathlib.Path(path)
  try:
    made.mkdir(parents=True, exist_ok=True)
    probe = made / ".mmdrl-probe"
    probe.touch()
    probe.unlink()
  except OSError as error:
    raise errors.UserError(
      f"cannot write to {path!r}: {error.strerror}; pass another -o DIR"
    ) from None
  return made


def write_csv(
  path: pathlib.Path, columns: Sequence[str], rows: Sequence[Any]
) -> None:
  """Writes the named fields of dataclasses, numbers in full precision."""
  with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
      fields = dataclasses.asdict(row)
      writer.writerow([fields[column] for column in columns])
