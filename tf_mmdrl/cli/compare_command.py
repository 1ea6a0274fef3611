"""`mmdrl compare`: agents side by side, with intervals over seeds."""

import argparse
from typing import List, Tuple

from tf_mmdrl.cli import output, run_argument
from tf_mmdrl.core import errors, notices, run_files, score_text

EXAMPLE = "mmdrl compare runs/sweep --last 3"
PAGE = "docs/reports.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl compare`."""
  run_argument.add_several(parser)
  parser.add_argument(
    "--last",
    metavar="K",
    type=int,
    default=1,
    help="a seed's score is the mean of its last K evaluations; 0: its best",
  )


def run(args: argparse.Namespace) -> int:
  """Prints a table for each game, the best agent first."""
  if args.last < 0:
    raise errors.UserError(f"--last must be at least 0, got {args.last}")
  run_files.find(args.runs)
  from tf_mmdrl.report import intervals, results, run_results

  found = run_results.read(args.runs)
  for path in found.without_evaluations:
    notices.warn(f"left out, not evaluated yet: {path}")
  agents = results.agents(results.name_variants(found.runs), last=args.last)
  if any(len(m.values) > 1 for a in agents for m in a.measured.values()):
    intervals.require_rliable()
  games = list(dict.fromkeys(g for agent in agents for g in agent.measured))
  for game in games:
    if game is not games[0]:
      print()
    print(game)
    head = ("agent", "seeds", "mean", "95 % interval", "lowest", "highest")
    print(*output.table([head, *_rows(agents, game)], left=1), sep="\n")
  how = f"the mean of its last {args.last} evaluations"
  if args.last < 2:
    how = "its last evaluation" if args.last else "its best evaluation"
  text = (
    f"a seed's score is {how}; intervals are of the mean over seeds, by the"
    " bootstrap, and few seeds make them too narrow"
  )
  print()
  print(*output.wrapped(text), sep="\n")
  return 0


def _rows(agents, game: str) -> List[Tuple[str, ...]]:
  from tf_mmdrl.report import intervals, score_statistics

  made = []
  for agent in agents:
    if game not in agent.measured:
      continue
    values = agent.measured[game].values
    found = intervals.estimate(score_statistics.mean, values[:, None])
    between = "-"
    if found.low is not None and found.high is not None:
      ends = map(float, (found.low, found.high))
      between = " to ".join(map(score_text.number, ends))
    made.append((float(found.point), agent.name, values, between))
  made.sort(key=lambda one: -one[0])
  return [
    (
      name,
      str(len(values)),
      score_text.number(mean),
      between,
      score_text.number(values.min()),
      score_text.number(values.max()),
    )
    for mean, name, values, between in made
  ]
