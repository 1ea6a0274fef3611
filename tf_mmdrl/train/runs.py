"""Reads a run that another process may be writing; changes nothing."""

import contextlib
import pathlib
import sys
from typing import Iterator, List, NamedTuple, Optional

from tf_agents.specs import tensor_spec

from tf_mmdrl import serving
from tf_mmdrl.core import errors
from tf_mmdrl.replay import DamagedFileError
from tf_mmdrl.train import checkpoints, factories
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.run_state import RunState


class Found(NamedTuple):
  """A checkpoint.

  Attributes:
    step: where it was made.
    damage: what is wrong with it, if anything is.
  """

  step: int
  damage: Optional[str]


def list_checkpoints(directory: RunDirectory) -> List[Found]:
  """All checkpoints, newest first, each verified (its replay is not)."""
  there = checkpoints.Checkpoints(directory.checkpoints)
  found = []
  for step in there.steps():
    try:
      there.verify(step)
      found.append(Found(step, None))
    except DamagedFileError as error:
      found.append(Found(step, str(error)))
  return found


def exported(
  directory: RunDirectory, version: Optional[int] = None
) -> serving.Policy:
  """A policy that the run exported, the newest if no version is given."""
  config = directory.config()
  environment = factories.environment(config)
  observation, action = tensor_spec.from_spec(
    (environment.observation_spec(), environment.action_spec())
  )
  environment.close()
  net = factories.network(config, observation, action)
  net.create_variables()
  return serving.load(net, directory.export, version)


@contextlib.contextmanager
def restored(path: pathlib.Path) -> Iterator[RunState]:
  """The run as it was at its newest whole checkpoint."""
  directory = RunDirectory(path)
  state = RunState(directory.config(), directory)
  try:
    if not state.restore(warn, clean=False):
      raise errors.UserError(
        f"the run in {str(path)!r} has no checkpoint yet; wait for the first"
      )
    yield state
  finally:
    state.close()


def warn(text: str) -> None:
  """Shows a warning to the person at the terminal."""
  print(f"mmdrl: warning: {text}", file=sys.stderr)


def note(text: str) -> None:
  """Tells the person at the terminal."""
  print(f"mmdrl: {text}", file=sys.stderr)
