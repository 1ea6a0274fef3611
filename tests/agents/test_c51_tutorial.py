"""The tutorial's script runs, and differs from C51's in two calls only."""

import ast
import importlib.util
import inspect
import pathlib
import re

import numpy as np
import pytest

_PATH = pathlib.Path(__file__).parents[2] / "examples" / "c51_tutorial.py"
# What CategoricalDqnAgent is told and MMDQNAgent need not be.
_LEFT_OUT = {"min_q_value", "max_q_value", "td_errors_loss_fn"}


@pytest.fixture(scope="module")
def tutorial():
  spec = importlib.util.spec_from_file_location("c51_tutorial", _PATH)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def test_mmdqn_trains_in_c51s_place(tutorial, monkeypatch):
  monkeypatch.setattr(tutorial, "INITIAL_COLLECT_STEPS", 200)
  monkeypatch.setattr(tutorial, "LOG_INTERVAL", 50)
  monkeypatch.setattr(tutorial, "EVAL_INTERVAL", 100)
  monkeypatch.setattr(tutorial, "NUM_EVAL_EPISODES", 3)
  lines = []
  returns = tutorial.train("mmdqn", 0, 300, show=lines.append)
  losses = [
    float(match[1])
    for match in map(re.compile(r"loss (\S+)").search, lines)
    if match
  ]
  assert len(losses) == 6
  assert np.all(np.isfinite(losses))
  assert [iteration for iteration, _ in returns] == [0, 100, 200, 300, 300]
  assert all(1 <= score <= 500 for _, score in returns)
  assert sum("average return" in line for line in lines) == len(returns)


def test_the_agents_are_made_alike_but_for_what_is_left_out(tutorial):
  (theirs, their_agent), (ours, our_agent) = (
    _calls(function) for function in (tutorial.c51, tutorial.mmdqn)
  )
  # The network: as many numbers for each action, under another name.
  assert theirs.pop("num_atoms") == ours.pop("num_particles")
  assert theirs == ours
  # The agent: three keywords fewer, all others as they were.
  assert set(their_agent) - set(our_agent) == _LEFT_OUT
  assert our_agent == {
    name: value for name, value in their_agent.items() if name not in _LEFT_OUT
  }


def test_nothing_else_knows_which_agent_it_is(tutorial):
  tree = ast.parse(inspect.getsource(tutorial.train))
  uses = [
    node
    for node in ast.walk(tree)
    if isinstance(node, ast.Name) and node.id == "agent_name"
  ]
  assert len(uses) == 1  # to choose the function that makes it
  names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
  assert not names & {"c51", "mmdqn", "MMDQNAgent", "ParticleNetwork"}


def _calls(function):
  """The arguments of the two calls, network and agent, by name or place."""
  body = ast.parse(inspect.getsource(function)).body[0].body
  _, assign, result = body  # the docstring, the network, the agent
  assert isinstance(assign, ast.Assign) and isinstance(result, ast.Return)
  return [
    {
      **{place: ast.unparse(node) for place, node in enumerate(call.args)},
      **{word.arg: ast.unparse(word.value) for word in call.keywords},
    }
    for call in (assign.value, result.value)
  ]
