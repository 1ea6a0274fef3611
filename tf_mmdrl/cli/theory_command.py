"""`mmdrl theory`: the paper's theorems, measured."""

import argparse
from typing import TYPE_CHECKING, Sequence

from tf_mmdrl.cli import output, quiet
from tf_mmdrl.core import errors, plotting, progress

if TYPE_CHECKING:
  from tf_mmdrl.tabular.claims import Claim

_ROOM = 20  # columns for a setting beside its figures, not a word a line
_COLUMNS = ("claim", "setting", "measured", "bound", "holds")


EXAMPLE = "mmdrl theory --mdps 100 -o out"
PAGE = "docs/theory.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl theory`."""
  parser.add_argument(
    "-o", "--output", metavar="DIR", help="write theory.csv, .png and .svg here"
  )
  parser.add_argument(
    "--mdps",
    type=int,
    default=1000,
    help="number of random MDPs to measure Theorem 2.1 on",
  )


def run(args: argparse.Namespace) -> int:
  """Measures every claim, prints it, and writes it where asked."""
  if args.mdps < 1:
    raise errors.UserError(f"--mdps must be at least 1, got {args.mdps}")
  directory = None
  if args.output:  # before the run, not after it
    plotting.require_matplotlib()
    directory = output.directory(args.output)
  with quiet.loading():
    from tf_mmdrl.tabular import tabular_figures, theory

  with progress.Progress(1.0, "theory") as shown:
    result = theory.measure(args.mdps, shown.update)
  _print(result.claims)
  if directory:
    output.write_csv(directory / "theory.csv", _COLUMNS, result.claims)
    tabular_figures.write_theory(result.curves, directory)
    print(f"wrote theory.csv, theory.png and theory.svg to {directory}")
  return 0


def _print(claims: "Sequence[Claim]") -> None:
  """A line for each setting of each claim; two in a narrow terminal."""
  last = None
  for claim in claims:
    if claim.claim != last:
      print("\n".join(output.wrapped(claim.claim)))
      last = claim.claim
    verdict = "holds" if claim.holds else "FAILS"
    figures = f"{claim.measured:<12.6g} against {claim.bound:<12.6g}"
    first = f"  {verdict}  {figures} "
    rest = " " * len(first)
    if output.width() - len(first) < _ROOM:
      print(first.rstrip())
      first = rest = "    "
    print("\n".join(output.wrapped(claim.setting, first, rest)))
  holding = sum(claim.holds for claim in claims)
  print(f"{holding} of {len(claims)} claims hold")
