"""Lines and tables: whole, and as wide as the terminal."""

import re
import sys
import threading

import pytest

from tf_mmdrl import zoo
from tf_mmdrl.cli import main, output


def test_lines_of_several_threads_stay_whole(capfd):
  switched = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  line = "a run of a sweep: begins"
  try:
    threads = [
      threading.Thread(target=lambda: [output.say(line) for _ in range(300)])
      for _ in range(4)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
  finally:
    sys.setswitchinterval(switched)
  assert capfd.readouterr().out.splitlines() == 1200 * [line]


_ROWS = [
  ("run", "state", "score"),
  ("runs/a-game-an-agent-seed0", "finished", "1.25"),
  ("short", "stopped", "3.50"),
]


def test_a_table_that_does_not_fit_has_lines_for_each_row(monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  assert list(output.table(_ROWS)) == [
    "run                            state  score",
    "runs/a-game-an-agent-seed0  finished   1.25",
    "short                        stopped   3.50",
  ]
  monkeypatch.setenv("COLUMNS", "40")
  wide = [(*row, "x" * 12) for row in _ROWS]
  assert list(output.table(wide)) == [
    "runs/a-game-an-agent-seed0",
    "  state finished, score 1.25,",
    "  xxxxxxxxxxxx xxxxxxxxxxxx",
    "short",
    "  state stopped, score 3.50,",
    "  xxxxxxxxxxxx xxxxxxxxxxxx",
  ]


def test_names_that_were_alike_when_cut_have_lines_of_their_own(monkeypatch):
  monkeypatch.setenv("COLUMNS", "40")
  rows = [
    ("run", "state", "score"),
    ("runs/a-game-dqn-with-a-preset-seed0", "finished", "1.25"),
    ("runs/a-game-iqn-with-a-preset-seed0", "stopped", "3.50"),
  ]
  assert list(output.table(rows)) == [
    "runs/a-game-dqn-with-a-preset-seed0",
    "  state finished, score 1.25",
    "runs/a-game-iqn-with-a-preset-seed0",
    "  state stopped, score 3.50",
  ]
  assert list(output.table(rows[:2]))[1].endswith("  finished   1.25")


@pytest.mark.parametrize("line", ["zoo", "zoo cartpole", "presets", "agents"])
@pytest.mark.parametrize("columns", [40, 80])
def test_commands_fit_the_terminal(line, columns, monkeypatch, capsys):
  monkeypatch.setenv("COLUMNS", str(columns))
  assert main.main(line.split()) == 0
  out = capsys.readouterr().out
  for shown in out.splitlines():
    # Words, paths and commits among them, are never cut.
    assert len(shown) <= columns or len(shown.split()) <= 2, shown
  if line == "zoo":
    for entry in zoo.entries().values():
      assert f"{entry.score:.2f}" in out


@pytest.mark.parametrize("columns", [40, 80])
def test_help_breaks_lists_behind_their_commas(columns, monkeypatch):
  monkeypatch.setenv("COLUMNS", str(columns))
  parser = main.root_parser().commands["sweep"]
  main.load("sweep", parser)
  shown = re.split(r"[,()\s]+", parser.format_help())
  for game in ("Asterix", "Breakout", "Seaquest", "SpaceInvaders"):
    assert f"MinAtar/{game}" in shown
