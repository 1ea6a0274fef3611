"""A run as its newest checkpoint has it; reading it changes nothing."""

import contextlib
import pathlib
from typing import Iterator

from tf_mmdrl.core import errors, notices
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.run_state import RunState


@contextlib.contextmanager
def restored(path: pathlib.Path) -> Iterator[RunState]:
  """The run as it was at its newest whole checkpoint."""
  directory = RunDirectory(path)
  state = RunState(directory.config(), directory)
  try:
    if not state.restore(notices.warn, clean=False):
      raise errors.UserError(
        f"the run in {str(path)!r} has no checkpoint yet; wait for the first"
      )
    yield state
  finally:
    state.close()
