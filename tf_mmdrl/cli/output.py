"""The directory a command writes to, its tables, and lines that fit."""

import csv
import dataclasses
import io
import pathlib
import shutil
import sys
import textwrap
import threading
from typing import Any, Iterator, List, Sequence, Tuple

from tf_mmdrl.core import errors, notices, whole_files

_SAYING = threading.Lock()
_LEAST = 12  # columns of a terminal for the first column of a table


def say(line: str) -> None:
  """Prints a line, whole beside those of other threads.

  What goes on does not depend on who reads it.
  """
  with _SAYING:
    notices.show(f"{line}\n", sys.stdout)


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


def require_place(path: pathlib.Path) -> None:
  """Raises unless a file of that name can be made where it is to lie."""
  if not path.parent.is_dir():
    raise errors.UserError(
      f"there is no directory {str(path.parent)!r} for {path.name!r}; make it"
      " or pass another"
    )
  if path.is_dir():
    raise errors.UserError(
      f"{str(path)!r} is a directory, and a file is wanted; pass another name"
    )


def write_csv(
  path: pathlib.Path, columns: Sequence[str], rows: Sequence[Any]
) -> None:
  """Writes the named fields of dataclasses, numbers in full precision."""
  out = io.StringIO(newline="")
  writer = csv.writer(out)
  writer.writerow(columns)
  for row in rows:
    fields = dataclasses.asdict(row)
    writer.writerow([fields[column] for column in columns])
  whole_files.write(path, out.getvalue().encode())


def width() -> int:
  """The terminal's columns; 80 where there is none, or as COLUMNS says."""
  return max(40, shutil.get_terminal_size().columns)


def wrapped(text: str, first: str = "", rest: str = "") -> List[str]:
  """A text in lines that fit the terminal.

  Args:
    text: whole words stay whole.
    first: what begins the first line.
    rest: what begins the others.

  Returns:
    The lines, at least one.
  """
  lines = textwrap.wrap(
    text,
    width(),
    initial_indent=first,
    subsequent_indent=rest,
    break_long_words=False,
    break_on_hyphens=False,
  )
  return lines or [first.rstrip()]


def two_columns(rows: Sequence[Tuple[str, str]]) -> Iterator[str]:
  """Lines of names, and beside them what is said of each.

  Args:
    rows: a name and a text each. A name that is wider than half the terminal
      has a line of its own.
  """
  widest = min(max(len(name) for name, _ in rows), width() // 2)
  below = " " * (widest + 2)
  for name, text in rows:
    if len(name) > widest:
      yield name
      name = ""
    yield from wrapped(text, f"{name:{widest}}  ", below)


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
  """Lines of a table that fits the terminal.

  Args:
    rows: cells; the first row is the heading. Where all do not fit, the first
      column is cut in the middle; where that is not enough, or makes two cells
      alike, each row has lines of its own.
    left: how many columns are aligned to the left.
  """
  widths = [max(map(len, column)) for column in zip(*rows)]
  room = width()
  first = min(widths[0], room - sum(widths[1:]) - 2 * len(widths) + 2)
  names = {row[0] for row in rows}
  if first < min(_LEAST, widths[0]) or len(names) > len(
    {_cut(name, first) for name in names}
  ):
    for row in rows[1:]:
      yield _cut(row[0], room)
      pairs = (f"{name} {cell}" for name, cell in zip(rows[0][1:], row[1:]))
      yield from wrapped(", ".join(pairs), "  ", "  ")
    return
  for row in rows:
    cells = [f"{_cut(row[0], first):{first}}"]
    for column, size in enumerate(widths[1:], 1):
      aligned = "<" if column < left else ">"
      cells.append(f"{row[column]:{aligned}{size}}")
    yield "  ".join(cells).rstrip()


def _cut(text: str, size: int) -> str:
  """Its beginning and its end, if it is longer."""
  if len(text) <= size:
    return text
  end = (size - 3) * 2 // 3  # the end tells more: the seed of a run
  return text[: size - 3 - end] + "..." + text[len(text) - end :]


def gigabytes(size: float) -> str:
  """A number of bytes for people."""
  return f"{size / 1e9:,.2f} GB"


def duration(seconds: float) -> str:
  """A time for people."""
  for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
    if seconds >= 2 * length:
      return f"{seconds / length:.1f} {unit}"
  return f"{seconds:.0f} s"
