"""A run as its newest checkpoint has it; reading it changes nothing."""

import contextlib
import pathlib
from typing import Any, Callable, Iterable, Iterator

from tf_mmdrl.core import errors, notices
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.run_state import RunState


@contextlib.contextmanager
def restored(
  path: pathlib.Path,
  imports: Iterable[str] = (),
  make: Callable[..., Any] = RunState,
) -> Iterator[Any]:
  """The run as it was at its newest whole checkpoint.

  Args:
    path: the run's directory.
    imports: modules of its settings that may be imported.
    make: (config, directory) -> the run's state, if it is not one that plays.
  """
  directory = RunDirectory(path, imports)
  config = directory.config()
  # No step is played, so it need not be possible to go on exactly; and nothing
  # is learnt, so any machine's one device will do.
  changed = config.replace(
    environment={"resume": "fresh"}, system={"devices": "one"}
  )
  state = make(changed, directory)
  state.config = config
  try:
    if not state.restore(notices.warn, clean=False):
      raise errors.UserError(
        f"the run in {str(path)!r} has no checkpoint yet; wait for the first"
      )
    yield state
  finally:
    state.close()
