"""`mmdrl inspect`: where a run stands.

All but the fingerprints is read from files without TensorFlow.
"""

import argparse
import pathlib
from typing import Iterable, Iterator

from tf_mmdrl.cli import output, quiet, run_argument
from tf_mmdrl.core import (
  run_files,
  run_records,
  run_states,
  score_text,
  whole_files,
)
from tf_mmdrl.serving import directories

EXAMPLE = "mmdrl inspect runs/CartPole-v1-mmdqn-classic-seed0"
PAGE = "docs/training.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl inspect`."""
  run_argument.add(parser)
  parser.add_argument(
    "--settings",
    action="store_true",
    help="also print the settings, the versions and the machine",
  )
  parser.add_argument(
    "--fingerprint",
    action="store_true",
    help="print only the fingerprint of the newest checkpoint",
  )
  parser.add_argument(
    "--all", action="store_true", help="print everything, part by part"
  )


def run(args: argparse.Namespace) -> int:
  """Prints it; changes nothing, so a run under way may be inspected."""
  files = run_argument.require(args)
  run_records.check_config(files)
  run_records.check_metrics(files)
  if args.fingerprint:
    _show_fingerprint(args, parts=False)
    return 0
  summary = run_states.read(files)
  _show(_summary(summary, files))
  if args.settings or args.all:
    _show(_settings(files))
  if args.all:
    _show_fingerprint(args, parts=True)
  return 0


def _show(lines: Iterable[str]) -> None:
  for line in lines:
    print(*output.wrapped(line, rest="  "), sep="\n")


def _summary(
  state: run_states.State, files: run_files.RunFiles
) -> Iterator[str]:
  identity = state.identity
  yield (
    f"{identity.agent} on {identity.environment}, seed {identity.seed},"
    f" {state.activity}"
  )
  yield f"step: {state.step:,} of {state.steps:,}"
  if state.score is None:
    yield "score: not evaluated yet"
  else:
    yield (
      f"score: {score_text.number(state.score)} in the newest evaluation,"
      f" {score_text.number(state.best)} in the best, after"
      f" {state.best_step:,} steps"
    )
  yield from run_states.describe_unit(files.rows())
  counted = [f"{name}: {number:,}" for name, number in state.counted.items()]
  if counted:
    yield ", ".join(counted)
  for step, path in run_records.checkpoints(files.checkpoints).items():
    yield f"checkpoint {step}: {_damage(path) or 'whole'}"
  exported = ", ".join(map(str, directories.versions(files.export)))
  yield f"exported: {exported or 'nothing yet'}"


def _damage(checkpoint: pathlib.Path) -> str:
  """What is wrong with a checkpoint; its replay is not looked at."""
  try:
    run_records.verify(checkpoint)
  except whole_files.DamagedFileError as error:
    return str(error)
  return ""


def _settings(files: run_files.RunFiles) -> Iterator[str]:
  for name, value in files.settings().items():
    yield f"{name}={value}"
  for name, value in files.surroundings():
    yield f"{name}={value}"


def _show_fingerprint(args: argparse.Namespace, *, parts: bool) -> None:
  with quiet.loading():
    found = run_argument.restored(args)
  with found as state:
    if parts:
      _show(
        f"{part}: {digest}" for part, digest in state.fingerprints().items()
      )
      print("fingerprint: ", end="")
    print(state.fingerprint())
