"""Tables as CSV and Markdown."""

import csv
import io
import math

from tf_mmdrl.report import tables
from tf_mmdrl.report.tables import Score, Table

TABLE = Table(
  "small",
  "A small table",
  ["game", "ours", "theirs", "count"],
  ["Game", "Ours", "Theirs", "Count"],
  [
    ["Pong", Score(1.7, 0.0, 2.5, "0, 1", 32), Score(20.9), 1234],
    ["a|b", Score(12345.678, seeds="0"), None, 2],
    ["Tie", 3.0, 3.0, 3],
    ["Zero", math.nan, 1.25, 4],
  ],
  ["A note."],
  best=["ours", "theirs"],
)


def test_csv_has_all_digits_and_what_stands_behind_scores():
  rows = list(csv.reader(io.StringIO(tables.to_csv(TABLE))))
  assert rows[0] == [
    *("game", "ours", "theirs", "count"),
    *("ours_low", "ours_high", "ours_seeds", "ours_episodes"),
  ]
  assert rows[1] == ["Pong", "1.7", "20.9", "1234", "0.0", "2.5", "0, 1", "32"]
  assert rows[2] == ["a|b", "12345.678", "", "2", "", "", "0", "not given"]
  assert rows[4][1] == ""


def test_markdown_marks_the_best_and_shows_the_support():
  lines = tables.to_markdown(TABLE).splitlines()
  assert lines[:4] == [
    "## A small table",
    "",
    "| Game | Ours | Theirs | Count |",
    "| --- | ---: | ---: | ---: |",
  ]
  assert lines[4] == (
    "| Pong | 1.7 [0.0, 2.5] seeds 0, 1; 32 episodes | **20.9** | 1,234 |"
  )
  assert lines[5] == (
    "| a\\|b | 12,345.7 seeds 0; episodes not given | – | 2 |"
  )
  assert lines[6] == "| Tie | 3.0 | 3.0 | 3 |"  # nobody is the best
  assert lines[7] == "| Zero | – | 1.25 | 4 |"
  assert lines[-1] == "A note."


def test_numbers_of_any_size_are_short_and_tell_something():
  rows = [["Pong", value, None, 1] for value in (0.0042, -1e-9, 1e37, 0.0)]
  lines = tables.to_markdown(TABLE._replace(rows=rows)).splitlines()[4:8]
  shown = [line.split(" | ")[1] for line in lines]
  assert shown == ["0.0042", "-1e-09", "1e+37", "0.0"]


def test_cells_that_a_spreadsheet_would_execute_are_inert():
  wild = ["=1+1", "+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
  wild += ["-1, =2", "-1,@A1"]
  tame = ["Pong", "-3.5", "1e9", "", "a=b", "-1.5, 2", "-inf, -3"]
  table = Table(
    "wild",
    "Wild",
    ["name", "=heading"],
    ["Name", "=Heading"],
    [[name, -3.5] for name in (*wild, *tame)],
  )
  rows = list(csv.reader(io.StringIO(tables.to_csv(table), newline="")))
  assert rows[0] == ["name", "'=heading"]
  marked = [f"'{name}".replace("\r", " ") for name in wild]
  assert [row[0] for row in rows[1:]] == [*marked, *tame]
  assert {row[1] for row in rows[1:]} == {"-3.5"}  # a number is one
  lines = tables.to_markdown(table).splitlines()
  assert lines[2] == "| Name | '=Heading |"
  assert lines[4] == "| '=1+1 | -3.5 |"
  assert lines[5] == "| '+cmd\\|'/C calc'!A0 | -3.5 |"
  assert len(lines) == 4 + len(wild) + len(tame)  # each stays in its line
