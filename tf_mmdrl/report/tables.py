"""Tables that are written as CSV, as Markdown and in the report's page."""

import csv
import io
import math
from typing import Any, List, NamedTuple, Optional, Sequence

from tf_mmdrl.report import intervals, published

Cells = Sequence[Any]
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # how a formula begins
# Field of a score -> the field that says whether a CSV has a column for it.
_EXTRAS = {"low": "low", "high": "low", "seeds": "seeds", "episodes": "seeds"}


class Score(NamedTuple):
  """A cell: a number and what stands behind it.

  Attributes:
    point: the number.
    low: where its 95 % interval begins, if it has one.
    high: where it ends.
    seeds: which ones, in words; empty if the row says it.
    episodes: games behind it; None if not known.
    in_heading: whether the column's heading says so for people.
  """

  point: float
  low: Optional[float] = None
  high: Optional[float] = None
  seeds: str = ""
  episodes: Optional[int] = None
  in_heading: bool = False

  def support(self) -> str:
    """Seeds and episodes in words."""
    if not self.seeds or self.in_heading:
      return ""
    if self.episodes is None:
      return f"seeds {self.seeds}; episodes {published.NOT_GIVEN}"
    return f"seeds {self.seeds}; {self.episodes:,} episodes"


def score(
  found: intervals.Estimate, seeds: str = "", episodes: Optional[int] = None
) -> Score:
  """A cell of an estimate."""
  low, high = (None if b is None else float(b) for b in found[1:])
  return Score(float(found.point), low, high, seeds, episodes)


class Table(NamedTuple):
  """A table of a report.

  Attributes:
    name: the name of its files.
    title: the line above it.
    columns: names in the CSV.
    headings: names for people, one for each column.
    rows: cells, one for each column: text, a number, a `Score` or None.
    notes: below it.
    decimals: how many decimals of numbers people see.
    best: the columns whose highest number in a row is marked.
  """

  name: str
  title: str
  columns: Sequence[str]
  headings: Sequence[str]
  rows: Sequence[Cells]
  notes: Sequence[str] = ()
  decimals: int = 1
  best: Sequence[str] = ()


def to_csv(table: Table) -> str:
  """The table with full numbers.

  What stands behind scores (`_low`, `_high`, `_seeds`, `_episodes`) follows in
  columns of its own, where any row has it.
  """
  extras = [
    (index, field)
    for field, shown_by in _EXTRAS.items()
    for index in range(len(table.columns))
    if any(
      getattr(row[index], shown_by, None) not in (None, "")
      for row in table.rows
    )
  ]
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  names = [f"{table.columns[index]}_{field}" for index, field in extras]
  writer.writerow([inert(name) for name in [*table.columns, *names]])
  for row in table.rows:
    more = [_behind(row[index], field) for index, field in extras]
    writer.writerow([_plain(cell) for cell in [*row, *more]])
  return out.getvalue()


def to_markdown(table: Table) -> str:
  """The table for people, with its title and notes."""
  rows: List[Sequence[str]] = []
  for row in table.rows:
    marked = best_cells(table, row)
    cells = []
    for index, cell in enumerate(row):
      shown = display(table, inert(cell) if isinstance(cell, str) else cell)
      text = _escaped(" ".join(filter(None, shown)))
      cells.append(f"**{text}**" if index in marked else text)
    rows.append(cells)
  rule = ["---" if text_column(table, i) else "---:" for i in _indices(table)]
  lines = [f"## {table.title}", ""]
  headings = [_escaped(inert(heading)) for heading in table.headings]
  for line in (headings, rule, *rows):
    lines.append(f"| {' | '.join(line)} |")
  for note in table.notes:
    lines.extend(["", note])
  return "\n".join(lines) + "\n"


def to_cells(table: Table) -> List[List[str]]:
  """The headings and the rows as texts, for a terminal."""
  rows = [
    [" ".join(filter(None, display(table, cell))) for cell in row]
    for row in table.rows
  ]
  return [list(table.headings), *rows]


def _escaped(text: str) -> str:
  """A text that stays in its cell."""
  return text.replace("|", "\\|").replace("\n", " ")


def display(table: Table, cell: Any) -> List[str]:
  """A cell for people: the number, its interval, what stands behind it."""
  if cell is None:
    return ["–"]
  if isinstance(cell, Score):
    interval = ""
    if cell.low is not None and cell.high is not None:
      low, high = _number(table, cell.low), _number(table, cell.high)
      interval = f"[{low}, {high}]"
    return [_number(table, cell.point), interval, cell.support()]
  if isinstance(cell, float):
    return [_number(table, cell)]
  return [f"{cell:,}" if isinstance(cell, int) else str(cell)]


def best_cells(table: Table, row: Cells) -> List[int]:
  """The indices of a row's highest numbers among the compared columns."""
  compared = {
    index: value
    for index, name in enumerate(table.columns)
    if name in table.best and (value := number(row[index])) is not None
  }
  if len(compared) < 2 or len(set(compared.values())) == 1:
    return []
  highest = max(compared.values())
  return [index for index, value in compared.items() if value == highest]


def text_column(table: Table, index: int) -> bool:
  """Whether a column holds words."""
  return any(isinstance(row[index], str) for row in table.rows)


def number(cell: Any) -> Optional[float]:
  """What a cell is compared and sorted by, if it is a number."""
  value = cell.point if isinstance(cell, Score) else cell
  known = isinstance(value, (int, float)) and not math.isnan(value)
  return float(value) if known else None


def _indices(table: Table) -> range:
  return range(len(table.columns))


def _number(table: Table, value: float) -> str:
  """With one digit more if it is small and has one: 1.75, 1.7, 823.1."""
  if math.isnan(value):
    return "–"
  if table.decimals and value and not 0.05 <= abs(value) < 1e12:
    return f"{value:.3g}"
  if table.decimals and abs(value) < 10:
    return f"{value:.{table.decimals + 1}f}".removesuffix("0")
  return f"{value:,.{table.decimals}f}"


def _behind(cell: Any, field: str) -> Any:
  """A field of a score; an unknown number of episodes is said to be so."""
  value = getattr(cell, field, None)
  unknown = field == "episodes" and value is None and isinstance(cell, Score)
  return published.NOT_GIVEN if unknown else value


def _plain(cell: Any) -> Any:
  """A cell of a CSV; unknown ones are empty."""
  value = cell.point if isinstance(cell, Score) else cell
  if value is None or (isinstance(value, float) and math.isnan(value)):
    return ""
  if isinstance(value, float):
    return float(f"{value:.10g}")
  return inert(value) if isinstance(value, str) else value


def inert(text: str) -> str:
  """A text that no spreadsheet takes for a formula.

  Numbers stay numbers, and so do several with commas between them.

  Args:
    text: any.

  Returns:
    The text, with an apostrophe before what might be a formula.
  """
  if all(map(_is_number, text.split(", "))):
    return text
  mark = "'" if text.startswith(_FORMULAS) else ""
  return mark + text.replace("\r", " ")  # which ends a line for some


def _is_number(text: str) -> bool:
  try:
    float(text)
  except ValueError:
    return False
  return True
