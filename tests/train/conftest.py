"""What the tests of training share."""

import pytest
import train_fixtures

from tf_mmdrl.train import run_directory, run_state


@pytest.fixture
def make_state(tmp_path):
  """Makes states of small runs, all in one directory, and closes them."""
  made = []

  def make(*changes):
    directory = run_directory.RunDirectory(tmp_path)
    state = run_state.RunState(train_fixtures.small(*changes), directory)
    made.append(state)
    return state

  yield make
  for state in made:
    state.close()
