"""Any Python environment resumes to the same stream, or is refused by name."""

import json
import re

import hypothesis
import numpy as np
import odd_environments
import pytest
from hypothesis import strategies as st

from tf_mmdrl import environments
from tf_mmdrl.core import errors

# What can be captured, and so must be.
_CAPTURED = {
  "a_deque",
  "a_dict",
  "a_list",
  "array",
  "attribute",
  "builtin",
  "ended",
  "generators",
  "growing",
  "method",
  "mode",
  "nested",
  "partial",
  "phase",
  "squared",
  "turns",
}
# What a walk through attributes can see; `ExactEnvironment` finds out the rest.
_SEEN = sorted(set(odd_environments.KINDS) - odd_environments.UNSEEN)


def _wrap(names):
  env = environments.GymnasiumWrapper(odd_environments.make(names), seed=0)
  env.reset()
  return env


def _play(env, actions):
  return [tuple(map(np.ndarray.tolist, env.step(np.int64(a)))) for a in actions]


def _require_named(error, names):
  """The message must name a part that cannot be captured, not any part."""
  refused = set(names) - (_CAPTURED - {"ended"})
  assert any(re.search(rf"\b{name}\b", str(error)) for name in refused), error


def _resumes(names, past, future):
  """Whether the state was taken; then what follows it is the same."""
  env = _wrap(names)
  _play(env, past)
  try:
    state = json.dumps(env.get_state())
  except errors.UserError as error:
    _require_named(error, names)
    return False
  expected = _play(env, future)
  fresh = _wrap(names)
  try:
    fresh.set_state(json.loads(state))
  except errors.UserError as error:
    _require_named(error, names)
    return False
  assert _play(fresh, future) == expected
  return True


_ACTIONS = np.random.RandomState(1).randint(2, size=40)


@pytest.mark.parametrize("past", [17, 18])  # an odd and an even state
@pytest.mark.parametrize("name", _SEEN)
def test_each_kind_resumes_or_is_refused_by_name(name, past):
  taken = _resumes([name], _ACTIONS[:past], _ACTIONS[past:])
  assert taken == (name in _CAPTURED)


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(
  st.lists(
    st.sampled_from(_SEEN),
    min_size=1,
    max_size=6,
    unique=True,
  ),
  st.lists(st.integers(0, 1), max_size=30),
  st.lists(st.integers(0, 1), min_size=12, max_size=30),
)
def test_random_environments_resume_or_are_refused(names, past, future):
  taken = _resumes(names, past, future)
  if _CAPTURED.difference({"ended"}).issuperset(names):
    assert taken  # a Python generator only once it has run to its end
