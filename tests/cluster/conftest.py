"""What the tests of clusters share: small runs, and Ray on this machine."""

import os
import pathlib
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "train")]


@pytest.fixture(scope="module")
def ray_here():
  """Ray with room for two actors; nothing of it is left behind."""
  from tf_mmdrl.cluster import connection

  with pytest.MonkeyPatch.context() as patch:
    # Whom Ray starts imports what the tests register, too.
    patch.setenv("PYTHONPATH", os.pathsep.join([str(_HERE.parent), *sys.path]))
    with connection.local(2, object_store=100):
      yield
