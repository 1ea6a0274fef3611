"""`mmdrl calibrate`: do returns come as the particles say?"""

import argparse
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.cli import output, parsing, quiet
from tf_mmdrl.core import errors, plotting, progress, run_files, whole_files
from tf_mmdrl.environments import names

EXAMPLE = "mmdrl calibrate runs/sweep -o calibration"
PAGE = "docs/reports.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl calibrate`."""
  parser.add_argument(
    "runs",
    metavar="RUN",
    nargs="+",
    help="run directories, or directories that hold them",
  )
  parser.add_argument(
    "-o",
    "--output",
    metavar="DIR",
    help="directory to write tables (CSV) and pictures to",
  )
  parser.add_argument(
    "--episodes",
    metavar="N",
    default="64",
    help="games to play with the newest policy of each run; for returns that"
    " are vectors, games that begin with each action",
  )
  more = parser.add_argument_group(parsing.MORE)
  more.add_argument(
    "--every",
    metavar="K",
    type=int,
    default=4,
    help="compare at every K-th step of a game",
  )
  more.add_argument(
    "--seed", metavar="N", help="seed of the games; the run's if left out"
  )
  more.add_argument(
    "--import",
    dest="imports",
    metavar="MODULE",
    action="append",
    default=[],
    help="imports a module that the settings of a run name",
  )


def run(args: argparse.Namespace) -> int:
  """Plays games of each run, prints a table, and writes the files."""
  if args.every < 1:
    raise errors.UserError(f"--every must be at least 1, got {args.every}")
  if not args.episodes.isdigit() or int(args.episodes) < 1:
    raise errors.UserError(
      f"--episodes must be a whole number from 1, got {args.episodes!r}"
    )
  found = run_files.find(args.runs)
  for one in found:
    names.require(one.identity().environment)
  target: Optional[pathlib.Path] = None
  if args.output is not None:
    plotting.require_matplotlib("pictures of calibration")
    target = output.directory(args.output)
  with quiet.loading():
    from tf_mmdrl.report import calibration_report, joint_calibration
    from tf_mmdrl.train import calibrating, playing  # noqa: F401 (_measure)

  measured = [_measure(one, args) for one in found]
  kind = joint_calibration.Row
  joint = [row for row in measured if isinstance(row, kind)]
  rows = [row for row in measured if not isinstance(row, kind)]
  contents: Dict[str, bytes] = {}
  if rows:
    _print(rows)
    contents["calibration.csv"] = calibration_report.to_csv(rows).encode()
    drawn = [row for row in rows if row.particles > 1]
    if drawn:
      contents["calibration.png"] = calibration_report.picture(drawn)
  if joint:
    contents.update(_joint_files(joint))
  if target is not None:
    whole_files.write_all(target, contents)
    print(*(target / name for name in contents), sep="\n")
  return 0


def _joint_files(rows: Sequence[Any]) -> Dict[str, bytes]:
  """Prints the table of joint returns; what is to be written of them."""
  from tf_mmdrl.report import joint_calibration, page, tables

  for one in rows:
    print(joint_calibration.title(one))
    table = joint_calibration.table([one])
    lines = [table.headings[4:]]  # without what the title says
    for cells in table.rows:
      lines.append([" ".join(tables.display(table, c)) for c in cells[4:]])
    print(*output.table(lines), "", sep="\n")
  table = joint_calibration.table(rows)
  print(*output.wrapped(" ".join(table.notes)), sep="\n")
  contents = {"joint_returns.csv": tables.to_csv(table).encode()}
  for one in rows:
    name = page.slug(["joint_returns", *map(str, one.identity)])
    contents[f"{name}.png"] = joint_calibration.picture(one)
  return contents


def _measure(files: run_files.RunFiles, args: argparse.Namespace) -> Any:
  from tf_mmdrl.evaluation import calibration
  from tf_mmdrl.report.calibration_report import Row
  from tf_mmdrl.train import calibrating, playing
  from tf_mmdrl.train import config as configs

  policy = playing.open_policy(files.path, imports=args.imports)
  assert policy.config is not None  # it is a run's
  config = playing.for_episodes(policy.config, args.episodes)
  if args.seed is not None:
    config = configs.change(config, [f"system.seed={args.seed}"])
  identity = files.identity()
  label = f"{identity.environment} {identity.agent} {identity.seed}"
  if policy.is_joint:
    return _measure_joint(files, policy, config, label)
  with progress.Progress(1.0, label) as shown:
    forecasts = calibrating.forecasts(
      policy, config, every=args.every, progress=shown.update
    )
  number = forecasts.particles.shape[1]
  found = calibration.measure(forecasts, config.system.seed)
  return Row(identity, policy.number, number, found)


def _measure_joint(
  files: run_files.RunFiles, policy: Any, config: Any, label: str
) -> Any:
  """What joint particles say of first states; left with the run, too."""
  from tf_mmdrl.report import joint_calibration
  from tf_mmdrl.train import joint_calibrating, videos

  with progress.Progress(1.0, label) as shown:
    forecasts = joint_calibrating.forecasts(
      policy, config, progress=shown.update
    )
  limits = config.own_settings.limits()
  if limits is None:
    limits = joint_calibration.default_limits(forecasts)
  names = videos.names_of_actions(config, policy.num_actions)
  row = joint_calibration.Row(
    files.identity(), policy.number, names, np.array(limits), forecasts
  )
  joint_calibration.write(row, files)
  return row


def _print(rows: Sequence[Any]) -> None:
  """A line for each run, and the means of those that differ by their seed."""
  head = ["run", "in 50 %", "in 90 %", "CRPS", "skill", "energy", "bias"]
  groups: dict = {}
  for row in rows:
    groups.setdefault(row.identity[:2], []).append(row)
  lines: List[Tuple[str, ...]] = [tuple(head)]
  for (game, agent), members in groups.items():
    name = f"{game} {agent}"
    for row in members:
      lines.append((f"{name} {row.identity.seed}", *_cells([row])))
    if len(members) > 1:
      lines.append((f"{name}, mean", *_cells(members)))
  print(*output.table(lines), sep="\n")
  print()
  text = (
    "in 50 % and in 90 %: how many returns fell into the central interval to"
    " which the prediction gives that probability; CRPS, in rewards: 0 is"
    " perfect; skill: 1 is perfect, 0 knows nothing of the state; energy:"
    " distance between all predictions and all returns; bias: prediction less"
    " return."
  )
  print(*output.wrapped(text), sep="\n")
  if any(row.particles == 1 for row in rows):
    text = "An agent that predicts a mean alone has no intervals."
    print(*output.wrapped(text), sep="\n")


def _cells(rows: Sequence[Any]) -> Tuple[str, ...]:
  """The means over runs."""
  found = [row.found for row in rows]

  def mean(of) -> float:
    return float(np.mean([of(one) for one in found]))

  coverage = [
    f"{100 * mean(lambda one, level=level: one.coverage[level].point):.0f} %"
    for level in found[0].coverage
  ]
  if any(row.particles == 1 for row in rows):
    coverage = ["-"] * len(coverage)
  return (
    *coverage,
    f"{mean(lambda one: one.crps.point):.3f}",
    f"{mean(lambda one: one.skill.point):.2f}",
    f"{mean(lambda one: one.energy_distance):.3f}",
    f"{mean(lambda one: one.bias.point):+.3f}",
  )
