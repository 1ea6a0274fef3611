"""`mmdrl inspect`: what a run is and where it stands."""

import argparse
import pathlib

from tf_mmdrl.cli import quiet, run_argument
from tf_mmdrl.core import run_records
from tf_mmdrl.train import config as configs


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl inspect`."""
  run_argument.add(parser)
  parser.add_argument(
    "--fingerprint", action="store_true", help="print only the fingerprint"
  )


def run(args: argparse.Namespace) -> int:
  """Prints it; changes nothing, so a run under way may be inspected."""
  with quiet.loading():
    from tf_mmdrl import serving
    from tf_mmdrl.train import metrics, runs

  path = pathlib.Path(args.directory)
  directory = run_argument.directory(args)
  config = directory.config()
  run_records.check_metrics(directory)
  if args.fingerprint:
    with runs.restored(path, args.imports) as state:
      print(state.fingerprint())
    return 0
  for name, value in configs.fields(config):
    print(f"{name}={value}")
  for name, value in directory.surroundings():
    print(f"{name}={value}")
  for found in directory.list_checkpoints():
    print(f"checkpoint {found.step}: {found.damage or 'whole'}")
  exported = ", ".join(map(str, serving.versions(directory.export)))
  print(f"exported: {exported or 'nothing yet'}")
  with runs.restored(path, args.imports) as state:
    measured = state.metrics
    print(f"step: {state.step} of {config.schedule.steps}")
    print(f"updates: {state.updates}, episodes: {measured.episodes}")
    if measured.best_score is not None:
      print(f"best evaluation: {measured.best_score} at {measured.best_step}")
    unit = float(state.agent.unit)
    for line in metrics.describe_unit(measured.rows(), unit):
      print(line)
    for part, digest in state.fingerprints().items():
      print(f"{part}: {digest}")
    print(f"fingerprint: {state.fingerprint()}")
  return 0
