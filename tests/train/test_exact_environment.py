"""Environments that go on exactly where they were, or say that they cannot."""

import json

import numpy as np
import odd_environments
import pytest
from gymnasium import vector

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.train.exact_environment import EnvironmentState, ExactEnvironment

_ACTIONS = np.random.RandomState(1).randint(2, size=[60, 1])


def _exact(*names, period=1000, **options):
  """As a new process makes it."""
  env = vector.SyncVectorEnv([lambda: odd_environments.make(names)])
  wrapped = environments.GymnasiumWrapper(env, seed=0)
  return ExactEnvironment(wrapped, period, **options)


def _play(env, actions):
  """What a run sees, with fresh starts where they are due."""
  stream = []
  for action in actions:
    if env.is_due:
      env.rebuild()
    stream.append([np.asarray(part).tolist() for part in env.step(action)])
  return stream


def _saved(state):
  return EnvironmentState(json.loads(json.dumps(state.plain)), state.actions)


@pytest.mark.parametrize("past", [0, 17])
@pytest.mark.parametrize(
  "name", sorted(set(odd_environments.KINDS) - {"unseeded"})
)
def test_every_kind_goes_on_exactly(name, past):
  """By its state or by its actions, and saving does not change the run."""
  expected = _play(_exact(name), _ACTIONS)
  cut = _exact(name)
  assert _play(cut, _ACTIONS[:past]) == expected[:past]
  state = _saved(cut.state())
  assert cut.problem is None
  if name != "global":  # its state is that of the process
    assert _play(cut, _ACTIONS[past:]) == expected[past:]
  resumed = _exact(name)
  resumed.set_state(state)
  assert resumed.state() == state
  assert _play(resumed, _ACTIONS[past:]) == expected[past:]


def test_what_outlasts_a_fresh_start_is_found_out():
  cut = _exact("closure", period=10)  # refused, so its actions are kept
  assert "environment.envs[0].kept['closure'].closure" in cut.replayed_because
  _play(cut, _ACTIONS[:25])
  with pytest.raises(errors.UserError, match="led elsewhere.*resume=fresh"):
    _exact("closure", period=10).set_state(_saved(cut.state()))


def test_what_was_otherwise_on_the_way_is_found_out():
  cut = _exact("closure")
  _play(cut, _ACTIONS[:17])
  state = _saved(cut.state())
  first, second = state.actions[1].copy(), state.actions[2].copy()
  assert first != second
  state.actions[1], state.actions[2] = second, first  # the end is the same
  with pytest.raises(errors.UserError, match="led elsewhere"):
    _exact("closure").set_state(state)


def test_what_no_attribute_shows_is_found_out_before_the_run():
  assert "two plays" in _exact("global").replayed_because
  assert _exact("attribute").replayed_because is None


class _Late:
  """Keeps in no attribute what shows at every hundredth step only."""

  def keep(self, action):
    odd_environments.GLOBAL["number"] += 1
    return float(odd_environments.GLOBAL["number"] % 100 == 99)


@pytest.mark.parametrize("past", [40, 200])
def test_what_shows_late_is_found_out_at_a_checkpoint(past):
  """What the run has played is played again; a short probe shows nothing."""
  odd_environments.make([])  # forgets the number
  env = vector.SyncVectorEnv([lambda: odd_environments.Odd({"late": _Late()})])
  cut = ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)
  assert cut.replayed_because is None
  for actions in np.resize(_ACTIONS, [past, 1]):
    cut.step(actions)
  assert "inexact" in cut.state().plain
  assert "two plays" in cut.problem


def test_what_was_played_is_played_again_few_times_only():
  env = _exact("attribute")
  played = []
  step = env._environment.step
  env._environment.step = lambda actions: (played.append(1), step(actions))[1]
  for actions in np.resize(_ACTIONS, [200, 1]):
    env.step(actions)
    before = len(played)
    assert "probe" in env.state().plain
    assert len(played) - before <= 16 + len(env._record)
  # 200 steps, 16 of the probes of each state, and records of 1, 2, 4, ...
  assert len(played) <= 200 + 200 * 16 + 2 * 200
  assert env._compared == 128


def test_an_environment_without_a_seed_is_found_out_and_may_start_over():
  cut = _exact("unseeded")
  _play(cut, _ACTIONS[:17])
  state = _saved(cut.state())
  with pytest.raises(errors.UserError, match="led elsewhere.*resume=fresh"):
    _exact("unseeded").set_state(state)
  fresh = _exact("unseeded", resume="fresh")
  fresh.set_state(state)
  assert fresh.state() == state  # nothing was played
  np.testing.assert_array_equal(
    fresh.time_step.observation, cut.time_step.observation
  )
  assert fresh.is_due
  assert fresh.rebuild().is_first().all()
  assert not fresh.is_due


@pytest.mark.parametrize("attribute", ["number", "steps"])
def test_a_state_that_leads_elsewhere_is_refused(attribute):
  """The probe shows what the state does not: here, a part that was changed."""
  cut = _exact("attribute")
  _play(cut, _ACTIONS[:17])
  state = _saved(cut.state())
  text = state.plain["state"]
  changed = text.replace(f'"{attribute}": ', f'"{attribute}": 1')
  assert changed != text
  state.plain["state"] = changed
  with pytest.raises(errors.UserError, match="lead elsewhere"):
    _exact("attribute").set_state(state)


def test_a_time_step_that_was_not_there_is_refused():
  cut = _exact("attribute")
  _play(cut, _ACTIONS[:17])
  state = _saved(cut.state())
  state.plain["arrived"] = "0"
  with pytest.raises(errors.UserError, match="its observation is another"):
    _exact("attribute").set_state(state)


def test_a_part_that_appears_later_makes_the_run_inexact_and_no_more():
  env = _exact("attribute")
  inner = env._environment.gymnasium_env.envs[0].unwrapped
  _play(env, _ACTIONS[:5])
  inner.late = {1, 2}
  state = _saved(env.state())
  assert "late is a set" in env.problem
  assert env.is_due  # what the probe did may not have been undone
  _play(env, _ACTIONS[:5])
  with pytest.raises(errors.UserError, match="late is a set.*resume=fresh"):
    _exact("attribute").set_state(state)
  fresh = _exact("attribute", resume="fresh")
  fresh.set_state(state)
  assert _play(fresh, _ACTIONS[:5])


def test_states_of_earlier_versions_are_taken_without_proof():
  cut = _exact("attribute")
  expected = _play(cut, _ACTIONS[:5]) and _saved(cut.state())
  old = EnvironmentState({"state": expected.plain["state"]}, expected.actions)
  resumed = _exact("attribute")
  resumed.set_state(old)
  assert _play(resumed, _ACTIONS[5:]) == _play(cut, _ACTIONS[5:])
  fresh = _exact("attribute", resume="fresh")
  fresh.set_state(old)
  assert fresh.is_due

  cut = _exact("closure")
  _play(cut, _ACTIONS[:5])
  old = EnvironmentState({"boundary": 0}, cut.state().actions)
  resumed = _exact("closure")
  resumed.set_state(old)
  assert _play(resumed, _ACTIONS[5:]) == _play(cut, _ACTIONS[5:])


def test_with_fresh_episodes_nothing_is_probed():
  env = _exact("global", resume="fresh")
  assert _play(env, _ACTIONS[:3]) == _play(
    _exact("global", resume="fresh"), _ACTIONS[:3]
  )
  before = odd_environments.GLOBAL["number"]
  assert "inexact" in env.state().plain
  assert odd_environments.GLOBAL["number"] == before
