"""Paths of what the tests of agents share, and its end."""

import pathlib
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(_HERE))  # for `import agent_fixtures`
sys.path.insert(0, str(_HERE.parent / "ops"))  # for `import oracle`


@pytest.fixture(autouse=True, scope="module")
def forget_shared_agents(forget_graphs):
  """Lets go of the agents that a module's tests shared."""
  yield
  import agent_fixtures
  import family

  agent_fixtures.compiled.cache_clear()
  family.compiled.cache_clear()


@pytest.fixture(params=["eager", pytest.param("graph", marks=pytest.mark.slow)])
def eager_or_graph(request):
  """Eager by default: to trace an agent for a few updates takes longer."""
  import tensorflow as tf

  tf.config.run_functions_eagerly(request.param == "eager")
  yield
  tf.config.run_functions_eagerly(False)
