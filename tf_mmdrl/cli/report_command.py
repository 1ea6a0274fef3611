"""`mmdrl report`: tables and figures of runs, beside the published ones."""

import argparse
import pathlib
from typing import List

from tf_mmdrl.cli import output, parsing, run_argument
from tf_mmdrl.core import errors, plotting, run_files, whole_files

EXAMPLE = "mmdrl report runs -o report"
PAGE = "docs/reports.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl report`."""
  run_argument.add_several(parser, "*")
  parser.add_argument(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    help="directory to write the report to",
  )
  parser.add_argument(
    "--results",
    metavar="FILE",
    action="append",
    default=[],
    help="add runs from the evaluations.csv of another report",
  )
  parser.add_argument(
    "--published",
    action="store_true",
    help="report on the paper's own table instead of on runs",
  )
  parser.add_argument(
    "--baseline",
    metavar="AGENT",
    help="agent of the runs or of the paper to show improvement over",
  )
  parser.add_argument(
    "--last",
    metavar="K",
    type=int,
    default=0,
    help="score a seed by the mean of its last K evaluations; 0: by its best",
  )
  parser.add_argument(
    "--smooth",
    metavar="K",
    type=int,
    default=1,
    help="draw curves as means over K evaluations in a row; the paper takes 5",
  )
  _add_curves(parsing.more(parser))


def _add_curves(parser: argparse._ActionsContainer) -> None:
  parser.add_argument(
    "--curves",
    metavar="FILE",
    action="append",
    default=[],
    help="add learning curves of others from a CSV with one row per seed: the"
    " game, then its scores; needs a --label",
  )
  parser.add_argument(
    "--label",
    metavar="NAME",
    action="append",
    default=[],
    help="name of the agent of a --curves, in the same order",
  )
  parser.add_argument(
    "--curve-period",
    metavar="STEPS",
    type=int,
    default=250_000,
    help="agent steps between two scores of --curves",
  )


def run(args: argparse.Namespace) -> int:
  """Writes the report, and says where."""
  _check(args)
  if args.runs:
    run_files.find(args.runs)  # before a directory is made, or much is loaded
  from tf_mmdrl.report import intervals

  plotting.require_matplotlib("reports", "report")
  intervals.require_rliable()
  directory = pathlib.Path(args.output)
  with whole_files.made(directory):
    files = _write(args, directory)
  print(f"wrote {directory / 'report.html'} and {len(files) - 1} more files")
  return 0


def _write(args: argparse.Namespace, directory: pathlib.Path):
  """Makes the report in a directory that is there; the files."""
  from tf_mmdrl.report import assembly, page

  output.directory(args.output)  # before the long way to the end
  options = assembly.Options(args.baseline, args.last, args.smooth)
  if args.published:
    made = assembly.of_published(options)
  else:
    made = _of_runs(args, options)
  files = page.write(made, directory)
  for note in made.notes:
    print(*output.wrapped(note, "- ", "  "), sep="\n")
  return files


def _of_runs(args, options):
  from tf_mmdrl.report import (
    assembly,
    curve_files,
    evaluation_files,
    run_results,
  )

  runs, warnings = [], []
  if args.runs:
    found = run_results.read(args.runs)
    runs += found.runs
    warnings = _left_out(found.without_evaluations)
  for text in args.results:
    path = pathlib.Path(text)
    # Beside other runs the same agents must have other names.
    alone = not args.runs and len(args.results) == 1
    suffix = "" if alone else f" ({path.parent.name or path.stem})"
    runs += evaluation_files.read(path, suffix)
  for path, label in zip(args.curves, args.label):
    runs += curve_files.read(pathlib.Path(path), label, args.curve_period)
  number = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
  print(f"drawing {number}", flush=True)  # many take a minute
  return assembly.of_runs(runs, options, warnings)


def _left_out(paths: List[str]) -> List[str]:
  if not paths:
    return []
  return [f"Left out, without an evaluation yet: {', '.join(paths)}."]


def _check(args: argparse.Namespace) -> None:
  """Raises before anything is loaded or written."""
  given = args.runs or args.results or args.curves
  if args.published and given:
    raise errors.UserError(
      "--published reports on the paper alone; leave out RUN, --results and"
      " --curves, or --published: a report of runs has the paper's columns too"
    )
  if not (args.published or given):
    raise errors.UserError(
      "nothing to report on; pass RUN directories, --results, --curves or"
      " --published"
    )
  if len(args.curves) != len(args.label):
    raise errors.UserError(
      f"each --curves needs its --label, got {len(args.curves)} and"
      f" {len(args.label)}"
    )
  for name, least in (("curve_period", 1), ("last", 0), ("smooth", 1)):
    if getattr(args, name) < least:
      raise errors.UserError(
        f"--{name.replace('_', '-')} must be at least {least}, got"
        f" {getattr(args, name)}"
      )
