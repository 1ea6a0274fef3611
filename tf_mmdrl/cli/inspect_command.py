"""`mmdrl inspect`: what a run is and where it stands."""

import argparse
import pathlib

from tf_mmdrl.cli import quiet
from tf_mmdrl.train import config as configs


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl inspect`."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  parser.add_argument(
    "--fingerprint", action="store_true", help="print only the fingerprint"
  )


def run(args: argparse.Namespace) -> int:
  """Prints it; changes nothing, so a run under way may be inspected."""
  with quiet.loading():
    from tf_mmdrl import serving
    from tf_mmdrl.train import metrics as metrics_file
    from tf_mmdrl.train import run_directory, runs

  path = pathlib.Path(args.directory)
  directory = run_directory.RunDirectory(path)
  config = directory.config()
  if args.fingerprint:
    with runs.restored(path) as state:
      print(state.fingerprint())
    return 0
  for name, value in configs.fields(config):
    print(f"{name}={value}")
  for name, value in directory.surroundings():
    print(f"{name}={value}")
  for found in runs.list_checkpoints(directory):
    print(f"checkpoint {found.step}: {found.damage or 'whole'}")
  exported = ", ".join(map(str, serving.versions(directory.export)))
  print(f"exported: {exported or 'nothing yet'}")
  with runs.restored(path) as state:
    metrics = state.metrics
    print(f"step: {state.step} of {config.schedule.steps}")
    print(f"updates: {state.updates}, episodes: {state.metrics.episodes}")
    if metrics.best_score is not None:
      print(f"best evaluation: {metrics.best_score} at {metrics.best_step}")
    rows = metrics_file.parse(metrics.text)
    for line in metrics_file.describe_unit(rows, float(state.agent.unit)):
      print(line)
    for part, digest in state.fingerprints().items():
      print(f"{part}: {digest}")
    print(f"fingerprint: {state.fingerprint()}")
  return 0
