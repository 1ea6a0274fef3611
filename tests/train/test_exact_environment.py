"""Environments that go on exactly where they were, or say that they cannot."""

import functools
import json
import random
import re
import time

import hypothesis
import numpy as np
import odd_environments
import odd_helper
import pytest
from gymnasium import vector
from hypothesis import strategies as st

from tf_mmdrl import environments
from tf_mmdrl.core import errors
from tf_mmdrl.environments.snapshot import sharing
from tf_mmdrl.train.environment_states import EnvironmentState, Moment
from tf_mmdrl.train.exact_environment import ExactEnvironment

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
  "name",
  sorted(
    set(odd_environments.KINDS) - {"reset_global", *odd_environments.UNSEEDED}
  ),
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
  because = "depends on odd_environments.GLOBAL, which others share"
  assert because in _exact("global").replayed_because
  assert _exact("attribute").replayed_because is None


class _Late:
  """Keeps in a file what shows at every hundredth step only."""

  def __init__(self, file):
    self.file = str(file)

  def keep(self, action):
    with open(self.file, "a+") as file:
      file.write(".")
      number = file.tell()
    return float(number % 100 == 99)


@pytest.mark.parametrize("past", [40, 200])
def test_what_shows_late_is_found_out_at_a_checkpoint(tmp_path, past):
  """What the run has played is played again; a short probe shows nothing."""
  late = _Late(tmp_path / "kept")
  env = vector.SyncVectorEnv([lambda: odd_environments.Odd({"late": late})])
  cut = ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)
  assert cut.replayed_because is None
  for actions in np.resize(_ACTIONS, [past, 1]):
    cut.step(actions)
  assert "inexact" in cut.state().plain
  assert "two plays" in cut.problem
  cut.rebuild()
  cut.step(_ACTIONS[0])  # so few that they may be alike by chance
  assert "inexact" in cut.state().plain and "two plays" in cut.problem


class _Cached:
  """A class's cache holds what was drawn, and no attribute does."""

  def __init__(self):
    self.random = np.random.default_rng(0)

  @functools.cache  # noqa: B019
  def drawn(self, number):
    return self.random.random() + number

  def keep(self, action):
    return self.drawn(action)


def test_a_cache_of_a_method_is_named():
  made = odd_environments.Odd({"cached": _Cached()})
  env = vector.SyncVectorEnv([lambda: made])
  found = ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)
  assert "_Cached.drawn" in found.replayed_because


def test_where_the_processs_generators_are_is_in_no_fingerprint():
  one = _exact("attribute").state()
  two = _exact("attribute").state()  # which seeds them anew
  assert one.plain != two.plain
  assert one.of_environment == two.of_environment


def test_what_was_played_is_played_again_few_times_only(monkeypatch):
  env = _exact("attribute")
  played = []
  step = environments.GymnasiumWrapper.step

  def counted(self, actions):
    played.append(1)
    return step(self, actions)

  monkeypatch.setattr(environments.GymnasiumWrapper, "step", counted)
  for actions in np.resize(_ACTIONS, [100, 1]):
    env.step(actions)
    before = len(played)
    assert "probe" in env.state().plain
    assert len(played) - before <= 24 + len(env._record)
  # 100 steps, 24 of the probes of each state, and records of 1, 2, 4, ...
  assert len(played) <= 100 + 100 * 24 + 2 * 100
  assert env._replays.compared == 64


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


@pytest.mark.parametrize(
  "name, refused",
  [
    ("attribute", None),
    ("a_set", None),
    ("unseeded", "it depends on numpy.random, which others share"),
    ("entropy", r"led elsewhere in the process.*default_rng\(\)"),
  ],
)
def test_who_takes_over_goes_on_exactly_or_says_no(name, refused):
  """As where an actor on another machine dies, whose moment is known here."""
  lost, other = _exact(name), _exact(name)
  _play(lost, _ACTIONS[:17])
  start, record, *rest = lost.moment
  moment = Moment(start, [*record], *rest)
  if refused is None:
    other.go_to(moment)
    assert _play(other, _ACTIONS[17:]) == _play(lost, _ACTIONS[17:])
  else:
    with pytest.raises(errors.UserError, match=f"{refused}.*resume=fresh"):
      other.go_to(moment)


def test_who_takes_over_at_a_state_sees_what_was_seen():
  """No action is played there that would show it."""
  lost, other = _exact("attribute"), _exact("attribute")
  for _ in range(5):
    _play(lost, _ACTIONS)
  moment = lost.moment
  assert moment.num_actions == 0
  other.go_to(moment._replace(record=[]))
  with pytest.raises(errors.UserError, match="led elsewhere in the process"):
    other.go_to(moment._replace(record=[], seen=moment.seen + 1))


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


@pytest.mark.parametrize(
  "name", sorted(odd_environments.UNSEEN - odd_environments.LATE)
)
def test_what_no_attribute_shows_is_named_before_the_run(name):
  """Also where it shows at the beginning of an episode only."""
  is_helped = name.startswith("helper_")
  other = "odd_helper.[A-Z]" if is_helped else "odd_environments.GLOBAL"
  wanted = odd_environments.UNSEEDED.get(name, other)
  if name == "helper_closure":
    wanted = "odd_helper.count"
  assert re.search(rf"\b{wanted}", _exact(name).replayed_because)


@pytest.mark.parametrize("name", sorted(odd_environments.LATE))
def test_what_a_helper_keeps_is_named_when_it_changes(name):
  """No probe reaches the step at which it does."""
  env = _exact(name)
  assert env.replayed_because is None
  with env.noticing():
    _play(env, _ACTIONS[:10])
  assert "probe" in env.state().plain and env.problem is None
  with env.noticing():
    _play(env, _ACTIONS[:40])
  state = _saved(env.state())
  source = odd_environments.UNSEEDED[name]
  assert re.search(rf"depends on .*\b{source}\b", env.problem)
  with pytest.raises(errors.UserError, match=rf"\b{source}\b.*resume=fresh"):
    _exact(name).set_state(state)


def test_a_cache_of_a_pure_function_is_no_state():
  env = _exact("squared")
  _play(env, _ACTIONS[:20])
  assert "probe" in env.state().plain and env.problem is None


def test_what_was_drawn_when_a_module_was_imported_is_compared(monkeypatch):
  """It does not change, so only another process can tell."""

  class Salted:
    def keep(self, action):
      return action + odd_helper.SALT

  def make(salt):
    made = odd_environments.make([])
    monkeypatch.setattr(odd_helper, "SALT", salt, raising=False)
    made.kept["salted"] = Salted()
    env = vector.SyncVectorEnv([lambda: made])
    return ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)

  saved = _saved(make(0.25).state())
  make(0.25).set_state(saved)
  with pytest.raises(errors.UserError, match="odd_helper.SALT, which others"):
    make(0.5).set_state(saved)


class _ByHash:
  """Shows at its fortieth step what each process has by chance."""

  number = 1

  def __init__(self):
    self.steps = 0

  def keep(self, action):
    self.steps += 1
    return action + (_HASHES[0] if self.steps % 40 == 0 else 0)


_HASHES = [1]


@pytest.mark.parametrize("past", [50, 650])
def test_what_was_played_is_played_again_by_who_goes_on(monkeypatch, past):
  """A probe is short; and in the process that made it all was alike."""

  def make():
    made = odd_environments.Odd({"hash": _ByHash()})
    env = vector.SyncVectorEnv([lambda: made])
    return ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)

  cut = make()
  for number, actions in enumerate(np.resize(_ACTIONS, [past, 1])):
    cut.moment  # noqa: B018
    cut.step(actions)
    assert len(cut._record) <= 256, number
  state = _saved(cut.state())
  assert cut.problem is None
  make().set_state(state)  # all is alike
  _HASHES[0] = 2
  try:
    monkeypatch.setattr(sharing, "lasting", lambda *_: {})  # it is not named
    with pytest.raises(errors.UserError, match=f"the last {past} actions lead"):
      make().set_state(state)
  finally:
    _HASHES[0] = 1


def test_the_past_is_played_again_now_and_then(tmp_path):
  """What begins after hundreds of steps is found out in the same run."""

  class Later(_Late):
    steps = 0

    def keep(self, action):
      self.steps += 1
      return super().keep(action) if self.steps > 1000 else action

  late = Later(tmp_path / "kept")
  env = vector.SyncVectorEnv([lambda: odd_environments.Odd({"late": late})])
  cut = ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)
  found = []
  for number, actions in enumerate(np.resize(_ACTIONS, [8000, 1])):
    cut.moment  # noqa: B018
    cut.step(actions)
    if number % 200 == 0:
      found.append("inexact" in cut.state().plain)
  assert not any(found[:5]) and found[-1]
  assert "two plays" in cut.problem


def test_what_differs_is_told_with_what_the_code_asks(tmp_path):
  late = _Late(tmp_path / "kept")
  env = vector.SyncVectorEnv([lambda: odd_environments.Odd({"late": late})])
  cut = ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)
  for actions in np.resize(_ACTIONS, [200, 1]):
    cut.step(actions)
  state = _saved(cut.state())
  with pytest.raises(
    errors.UserError, match=r'open\(..., "a\+"\) \(test_exact'
  ):
    cut.set_state(state)


class _Timed(odd_environments.InReset):
  """Notes when it began, as many do to show how fast they are."""

  def __init__(self):
    self.began = time.perf_counter()

  def reset(self):
    self.began = time.perf_counter()

  def keep(self, action):
    return action


def test_a_clock_that_is_only_noted_is_no_state():
  def make():
    made = odd_environments.make(["attribute"])
    made.kept["timed"] = _Timed()
    env = vector.SyncVectorEnv([lambda: made])
    return ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)

  cut = make()
  _play(cut, _ACTIONS[:30])
  state = _saved(cut.state())
  assert cut.problem is None
  make().set_state(state)


def test_a_generator_that_others_share_is_noticed_late():
  """A probe is short; what it does not reach is seen when it is played."""
  env = _exact("attribute")
  assert env.replayed_because is None
  with env.noticing():
    _play(env, _ACTIONS[:5])
  assert "probe" in env.state().plain and env.problem is None
  np.random.random()  # somebody else draws
  with env.noticing():
    _play(env, _ACTIONS[:5])
    np.random.random()
  state = _saved(env.state())
  assert "depends on numpy.random" in env.problem
  with pytest.raises(errors.UserError, match="on numpy.random.*fresh"):
    _exact("attribute").set_state(state)


class _DrawsLate:
  """Draws from the process's generators, but not before its 40th step."""

  def __init__(self):
    self.steps = 0

  def keep(self, action):
    self.steps += 1
    late = self.steps >= 40
    return action + (np.random.random() + random.random() if late else 0)


def test_generators_that_nobody_has_drawn_from_yet_go_on_as_they_were():
  """No probe and no play could have shown that the environment will."""

  def make():
    made = odd_environments.make(["attribute"])
    made.kept["late"] = _DrawsLate()
    env = vector.SyncVectorEnv([lambda: made])
    return ExactEnvironment(environments.GymnasiumWrapper(env, seed=0), 1000)

  cut = make()
  assert cut.replayed_because is None
  _play(cut, _ACTIONS[:30])
  state = _saved(cut.state())  # its probe is where the 40th step comes
  expected = _play(cut, _ACTIONS[30:])
  resumed = make()
  resumed.set_state(state)
  assert _play(resumed, _ACTIONS[30:]) == expected


def test_who_seeds_the_shared_generator_goes_on_exactly():
  """Its actions lead back to where the generator was, and that is compared."""

  class Seeding(odd_environments.Odd):
    def reset(self, *, seed=None, options=None):
      if seed is not None:
        np.random.seed(seed)
      return super().reset(seed=seed, options=options)

  def make(period=1000):
    kept = odd_environments.make(["reset_numpy"]).kept
    env = vector.SyncVectorEnv([lambda: Seeding(kept)])
    wrapped = environments.GymnasiumWrapper(env, seed=0)
    return ExactEnvironment(wrapped, period)

  cut = make()
  assert "numpy.random" in cut.replayed_because
  _play(cut, _ACTIONS[:17])
  state = _saved(cut.state())
  expected = _play(cut, _ACTIONS[17:])
  resumed = make()
  resumed.set_state(state)
  assert _play(resumed, _ACTIONS[17:]) == expected
  np.random.random()  # as an evaluation in such an environment would
  moved = _saved(resumed.state())
  with pytest.raises(errors.UserError, match="depends on numpy.random"):
    make().set_state(moved)


@hypothesis.settings(max_examples=50, deadline=None)
@hypothesis.given(
  st.lists(
    st.sampled_from(odd_environments.KINDS), min_size=1, max_size=4, unique=True
  ),
  st.integers(0, 40),
)
def test_any_environment_goes_on_exactly_or_is_refused_by_name(names, past):
  cut = _exact(*names)
  with cut.noticing():
    _play(cut, _ACTIONS[:past])
  state = _saved(cut.state())
  expected = _play(cut, _ACTIONS[past:])
  resumed = _exact(*names)
  sources = {
    name: source
    for name, source in odd_environments.UNSEEDED.items()
    if name in names
  }
  # Those that change late may have been reached by the run, by probes, or not.
  must = sources.keys() - odd_environments.LATE
  if past >= 34:
    must = sources.keys()
  if "reset_global" in names:
    # A new process that begins at a checkpoint begins one more episode.
    sources["reset_global"] = "odd_environments.GLOBAL"
  try:
    resumed.set_state(state)
  except errors.UserError as error:
    named = "|".join(sources.values())
    assert sources and re.search(rf"\b({named})\b", str(error)), error
  else:
    assert not must
    assert _play(resumed, _ACTIONS[past:]) == expected


def _of_mo_gymnasium(name):
  pytest.importorskip("mo_gymnasium")
  made = environments.make_environment(name, num_envs=2, seed=1)
  return ExactEnvironment(made, 100)


@pytest.mark.parametrize(
  "name", ["deep-sea-treasure-v0", "resource-gathering-v0", "fishwood-v0"]
)
def test_vector_rewards_go_on_exactly_by_their_state(name):
  cut = _of_mo_gymnasium(name)
  assert cut.replayed_because is None
  actions = np.random.default_rng(0).integers(2, size=[40, 2])
  _play(cut, actions[:25])
  state = _saved(cut.state())
  expected = _play(cut, actions[25:])
  resumed = _of_mo_gymnasium(name)
  resumed.set_state(state)
  assert _play(resumed, actions[25:]) == expected


def test_four_rooms_draw_from_the_process_and_are_refused():
  cut = _of_mo_gymnasium("four-room-v0")
  _play(cut, np.zeros([5, 2], np.int64))
  with pytest.raises(errors.UserError, match="random, which.*resume=fresh"):
    _of_mo_gymnasium("four-room-v0").set_state(_saved(cut.state()))
