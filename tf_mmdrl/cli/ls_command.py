"""`mmdrl ls`: the runs that are here, and where each stands."""

import argparse
import pathlib
import time

from tf_mmdrl.cli import output
from tf_mmdrl.core import (
  errors,
  run_files,
  run_records,
  run_states,
  score_text,
)

EXAMPLE = "mmdrl ls runs/sweep"
PAGE = "docs/training.md"
_DEFAULT = "runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl ls`."""
  parser.add_argument(
    "directories",
    metavar="DIR",
    nargs="*",
    help=f"runs, or directories that hold some; {_DEFAULT} if left out",
  )


def run(args: argparse.Namespace) -> int:
  """Prints a line for each run, the newest last."""
  wanted = args.directories or [_DEFAULT]
  if not args.directories and not pathlib.Path(_DEFAULT).is_dir():
    print(f"no runs here yet: there is no directory {_DEFAULT!r}")
    return 0
  now = time.time()
  lines, broken = [], []
  for files in run_files.find(wanted):
    try:
      edits = run_records.edits(files)
      lines.append((files, run_states.read(files), edits))
    except errors.UserError as error:  # the others are shown all the same
      broken.append(str(error))
  lines.sort(key=lambda line: line[1].changed)
  rows = [("run", "state", "step", "of", "score", "best", "age")]
  for files, state, edits in lines:
    rows.append(
      (
        str(files.path),
        f"{state.activity}, edited" if edits else state.activity,
        f"{state.step:,}",
        f"{state.steps:,}",
        score_text.number(state.score),
        score_text.number(state.best),
        output.duration(max(0.0, now - state.changed)),
      )
    )
  print(*output.table(rows, left=2), sep="\n")
  edited = [text for _, _, edits in lines for text in edits]
  for word, texts in (("edited", edited), ("broken", broken)):
    for text in texts:
      print(*output.wrapped(text, f"{word}: ", "  "), sep="\n")
  return 0
