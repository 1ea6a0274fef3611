"""`mmdrl chain`: the paper's chain experiment."""

import argparse
import math
import re
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

from tf_mmdrl.cli import output, parsing, quiet
from tf_mmdrl.core import errors, plotting, progress
from tf_mmdrl.ops import kernel_words

if TYPE_CHECKING:
  from tf_mmdrl.tabular import experiment

_COLUMNS = (
  "K",
  "method",
  "moment",
  "mean",
  "ci_low",
  "ci_high",
  "monte_carlo",
  "exact",
)
_METHODS = ("gaussian-mmdrl", "unrectified-mmdrl", "qrdrl", "cdrl")
_HEADS = ("mean", "2nd", "3rd", "4th", "5th", "6th")
_LONG = 10  # the K from which on the summary averages


EXAMPLE = "mmdrl chain --lengths 5,10 --seeds 5 -o out"
PAGE = "docs/tabular.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl chain`."""
  parser.add_argument(
    "-o", "--output", metavar="DIR", help="write chain.csv, .png and .svg here"
  )
  parser.add_argument(
    "--lengths", default="1-15", help="chain lengths K, such as 1-15 or 5,10"
  )
  parser.add_argument(
    "--seeds", type=int, default=30, help="runs of each method and length"
  )
  parser.add_argument(
    "--particles", type=int, default=30, help="number of particles N"
  )
  parser.add_argument(
    "--gamma", type=float, default=0.9, help="discount factor"
  )
  parser.add_argument(
    "--methods",
    default=",".join(_METHODS),
    help="methods to run, joined by commas",
  )
  parser.add_argument(
    "--kernel",
    action="append",
    default=[],
    metavar="NAME",
    help="also run MMDRL with this kernel, such as exp_prod:3 or laplace:1",
  )
  _add_more(parsing.more(parser))


def _add_more(parser: argparse._ActionsContainer) -> None:
  parser.add_argument(
    "--iterations", type=int, default=15, help="iterations of a run"
  )
  parser.add_argument(
    "--episodes", type=int, default=100, help="episodes of an iteration"
  )
  parser.add_argument(
    "--rollouts",
    type=int,
    default=10_000,
    help="Monte Carlo returns to compare with",
  )
  parser.add_argument(
    "--spread",
    choices=("variance", "deviation"),
    default="variance",
    help="whether 0.08 is the variance or the standard deviation of the"
    " initial particles, which are drawn from N(-1, 0.08)",
  )
  parser.add_argument(
    "--clock",
    choices=("iterations", "episodes", "steps"),
    default="iterations",
    help="what t counts in the learning rate 1 / t^0.2",
  )
  parser.add_argument(
    "--copy",
    choices=("iterations", "episodes", "steps"),
    default="steps",
    help="how often the target particles are copied from the learnt ones",
  )


def run(args: argparse.Namespace) -> int:
  """Runs the experiment, prints it, and writes it where asked."""
  lengths = _lengths(args.lengths)
  for text in args.kernel:
    kernel_words.check(text)
  if args.output:
    plotting.require_matplotlib()
  with quiet.loading():
    from tf_mmdrl.tabular import experiment, tabular_figures

  clocks = {
    "iterations": experiment.count_iterations,
    "episodes": experiment.count_episodes,
    "steps": experiment.count_steps,
  }
  settings = experiment.Settings(
    lengths=lengths,
    seeds=args.seeds,
    particles=args.particles,
    gamma=args.gamma,
    iterations=args.iterations,
    episodes_per_iteration=args.episodes,
    rollouts=args.rollouts,
    deviation=0.08 if args.spread == "deviation" else math.sqrt(0.08),
    clock=clocks[args.clock],
    copy=clocks[args.copy],
  )
  methods = _methods(args.methods, args.kernel, settings)
  directory = None
  if args.output:  # before the long run, not after it
    directory = output.directory(args.output)
  with progress.Progress(1.0, "chain") as shown:
    rows = experiment.run(settings, methods, shown.update)
  _print_table(rows)
  _print_errors(rows)
  if directory:
    output.write_csv(directory / "chain.csv", _COLUMNS, rows)
    tabular_figures.write_chain(rows, directory)
    print(f"wrote chain.csv, chain.png and chain.svg to {directory}")
  return 0


def _lengths(text: str) -> List[int]:
  """`1-15`, `5,10` or a mixture of both."""
  lengths: List[int] = []
  for part in text.split(","):
    span = re.fullmatch(r"\s*(-?\d+)\s*(?:-\s*(\d+)\s*)?", part)
    if not span:
      raise errors.UserError(
        f"--lengths wants chain lengths such as 1-15 or 5,10, got {text!r}"
      )
    first = int(span[1])
    lengths.extend(range(first, int(span[2] or first) + 1))
  return sorted(set(lengths))


def _methods(
  names: str, kernels: Sequence[str], settings: "experiment.Settings"
) -> "Dict[str, experiment.Method]":
  from tf_mmdrl.ops import kernel_names
  from tf_mmdrl.tabular import experiment

  chosen = {}
  for name in filter(None, (part.strip() for part in names.split(","))):
    chosen[name] = experiment.paper_method(name, settings)
  for text in kernels:
    chosen[f"mmdrl {text}"] = experiment.mmdrl(kernel_names.parse(text))
  if not chosen:
    raise errors.UserError(
      f"--methods wants at least one of {', '.join(_METHODS)}, got {names!r}"
    )
  return chosen


def _print_table(rows: "Sequence[experiment.Row]") -> None:
  """The moments of all methods at each K, with half their 95 % interval."""
  print("Moments of the return from s_0 (mean, then central), 95 % interval")
  lines = [("   K  method", [f"{head:>16}" for head in _HEADS])]
  length = None
  for start in range(0, len(rows), len(_HEADS)):
    block = rows[start : start + len(_HEADS)]
    if length != block[0].K:
      length = block[0].K
      for name in ("exact", "monte_carlo"):
        cells = [f"{getattr(row, name):>9.3f}       " for row in block]
        lines.append((f"{length:4}  {name.replace('_', ' ')}", cells))
    cells = [f"{r.mean:>9.3f} ±{r.ci_high - r.mean:<5.3f}" for r in block]
    lines.append((f"{'':4}  {block[0].method}", cells))
  _print_fitting(lines)


def _print_errors(rows: "Sequence[experiment.Row]") -> None:
  """How far from the exact moments, relative to them, over the long chains."""
  long = [row for row in rows if row.K >= _LONG]
  if not long:
    return
  lengths = sorted({row.K for row in long})
  first, *others = dict.fromkeys(row.method for row in long)
  moments = sorted({row.moment for row in long})
  for title, error in (
    ("of the mean of the seeds", lambda row: abs(row.mean - row.exact)),
    ("of one seed, on average", lambda row: row.error),
  ):
    title = f"Error {title}, relative to exact, mean of K = {lengths}"
    print("\n" + "\n".join(output.wrapped(title, rest="  ")))
    table = {(r.method, r.moment, r.K): error(r) / abs(r.exact) for r in long}
    lines = []
    for method in (first, *others):
      means = (
        sum(table[method, moment, length] for length in lengths) / len(lengths)
        for moment in moments
      )
      lines.append((f"  {method}", [f"{mean:>8.1%}" for mean in means]))
    if others:
      lines.append((f"  {first} is closer, in so many of the K,", []))
    for method in others:
      closer = (
        sum(
          table[first, moment, length] < table[method, moment, length]
          for length in lengths
        )
        for moment in moments
      )
      cells = [f"{wins:>6}/{len(lengths)}" for wins in closer]
      lines.append((f"  than {method}", cells))
    _print_fitting(lines)


def _print_fitting(lines: Sequence[Tuple[str, Sequence[str]]]) -> None:
  """Prints a table, in parts below each other if it is wider than the terminal.

  Args:
    lines: what each is of, and its cells, or none.
  """
  label = max(len(name) for name, cells in lines if cells) + 2
  columns = list(zip(*(cells for _, cells in lines if cells)))
  widths = [max(map(len, column)) for column in columns]
  parts: List[List[int]] = []
  room = 0
  for column, width in enumerate(widths):
    if width > room:
      parts.append([])
      room = output.width() - label
    parts[-1].append(column)
    room -= width
  for part in parts:
    if part is not parts[0]:
      print()
    for name, cells in lines:
      shown = [f"{cells[i]:>{widths[i]}}" for i in part] if cells else []
      print(f"{name:{label}}{''.join(shown)}".rstrip())
