"""Small environments that keep their state in every place there is.

Each kind is a class with one `keep`: it returns a number that depends on what
was kept before, and changes it; some change it in `reset` alone. `make` puts
some together to an environment whose rewards are those numbers; each call makes
new classes, as a new process would.
"""

import collections
import enum
import functools
import importlib
import itertools
import random
import types

import gymnasium
import numpy as np
import odd_helper


class Mode(enum.Enum):
  """A state of two."""

  ODD = 1
  EVEN = 2


class Part:
  """An object in an environment."""

  def __init__(self, number):
    self.number = number

  def add(self, action):
    """Counts."""
    self.number += action + 1
    return self.number


def kinds():
  """Name -> a new class that keeps its state in the way of that name."""

  class Base:
    def __init__(self):
      self.begin()

  made = {}

  def register(name, begin, keep, **attributes):
    made[name] = type(
      name, (Base,), {"begin": begin, "keep": keep, **attributes}
    )

  def plain(self):
    self.number = 0

  def count(self, action):
    self.number += action + 1
    return self.number

  register("attribute", plain, count)

  def begin_list(self):
    self.a_list = [0]

  def keep_list(self, action):
    self.a_list.append(action)
    return sum(self.a_list[-5:]) + len(self.a_list)

  register("a_list", begin_list, keep_list)

  def begin_dict(self):
    self.a_dict = {}

  def keep_dict(self, action):
    key = ("visits", action)
    self.a_dict[key] = self.a_dict.get(key, 0) + 1
    return next(iter(self.a_dict.values()))

  register("a_dict", begin_dict, keep_dict)

  def begin_deque(self):
    self.a_deque = collections.deque([0], maxlen=4)

  def keep_deque(self, action):
    self.a_deque.append(action + self.a_deque[0])
    return sum(self.a_deque)

  register("a_deque", begin_deque, keep_deque)

  def begin_set(self):
    self.a_set = {0}

  def keep_set(self, action):
    self.a_set.add(8 * len(self.a_set) + action)
    return next(iter(self.a_set)) + len(self.a_set)

  register("a_set", begin_set, keep_set)

  def begin_nested(self):
    self.nested = Part(0)
    self.nested.inner = Part(1)

  def keep_nested(self, action):
    return self.nested.add(action) - self.nested.inner.add(1 - action)

  register("nested", begin_nested, keep_nested)

  def begin_growing(self):
    self.growing = []

  def keep_growing(self, action):
    self.growing.append(Part(action))
    return self.growing[len(self.growing) // 2].add(action)

  register("growing", begin_growing, keep_growing)

  class Local(Part):
    pass

  def begin_local(self):
    self.local = []

  def keep_local(self, action):
    self.local.append(Local(action))
    return self.local[0].add(action)

  register("local", begin_local, keep_local)

  def begin_turns(self):
    self.players = [Part(0), Part(10)]
    self.turns = self.players[0]

  def keep_turns(self, action):
    self.turns = self.players[self.turns is self.players[0]]
    return self.turns.add(action)

  # The alias comes first in the state, and the target's is another.
  def begin_turns_first(self):
    self.turns = None
    begin_turns(self)

  register("turns", begin_turns_first, keep_turns)

  def begin_array(self):
    self.array = np.asfortranarray(np.arange(6.0).reshape(2, 3))

  def keep_array(self, action):
    self.array[action] += 0.1
    return float(self.array.sum())

  register("array", begin_array, keep_array)

  def begin_masked(self):
    self.masked = np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False])

  def keep_masked(self, action):
    self.masked[action] = self.masked.sum()
    return float(self.masked.sum())

  register("masked", begin_masked, keep_masked)

  def begin_structured(self):
    self.structured = np.zeros(2, [("x", "i4"), ("y", "f4")])

  def keep_structured(self, action):
    self.structured["x"][action] += 1
    return int(self.structured["x"][0])

  register("structured", begin_structured, keep_structured)

  def begin_view(self):
    self.base = np.zeros(4)
    self.view = self.base[1:3]

  def keep_view(self, action):
    self.view[action] += 1
    return float(self.base[1])

  register("view", begin_view, keep_view)

  def begin_generators(self):
    self.generators = [
      np.random.default_rng(0),
      np.random.RandomState(1),
      np.random.Generator(np.random.Philox(2)),
      random.Random(3),
    ]

  def keep_generators(self, action):
    new, old, philox, python = self.generators
    draw = new.random() + old.rand() + philox.random() + python.random()
    return draw + action * python.gauss(0, 1)

  register("generators", begin_generators, keep_generators)

  def begin_stream(self):
    self.stream = np.random.default_rng(0)
    self.other = np.random.Generator(self.stream.bit_generator)

  def keep_stream(self, action):
    return (self.other if action else self.stream).random()

  register("stream", begin_stream, keep_stream)

  def begin_closure(self):
    number = 0

    def closure(action):
      nonlocal number
      number += action + 1
      return number

    self.closure = closure

  register("closure", begin_closure, lambda self, a: self.closure(a))

  def begin_default(self):
    def default(action, seen=[0]):  # noqa: B006
      seen[0] += action + 1
      return seen[0]

    self.default = default

  register("default", begin_default, lambda self, a: self.default(a))

  def begin_function(self):
    def function(action):
      function.number += action + 1
      return function.number

    function.number = 0
    self.function = function

  register("function", begin_function, lambda self, a: self.function(a))

  def begin_lambdas(self):
    self.lambdas = lambda action: action + 1

  def keep_lambdas(self, action):
    if action:
      self.lambdas = lambda action: action + 2
    return self.lambdas(action)

  register("lambdas", begin_lambdas, keep_lambdas)

  def begin_method(self):
    self.method = Part(0).add  # of an object that nothing else holds

  register("method", begin_method, lambda self, a: self.method(a))

  def begin_foreign(self):
    number = [0]

    def add(self, action):  # not the `add` that the object has
      number[0] += action + 2
      return number[0]

    self.foreign = types.MethodType(add, Part(0))

  register("foreign", begin_foreign, lambda self, a: self.foreign(a))

  def begin_digits(self):
    self.digits = 10**5000

  def keep_digits(self, action):
    self.digits += action
    return self.digits % 7

  register("digits", begin_digits, keep_digits)

  def begin_phase(self):
    self.phase = self.early

  def early(self, action):
    self.phase = self.late if action else self.early
    return 1

  def late(self, action):
    self.phase = self.early if action else self.late
    return 2

  register(
    "phase", begin_phase, lambda s, a: s.phase(a), early=early, late=late
  )

  def begin_builtin(self):
    self.seen = []
    self.builtin = self.seen.append

  def keep_builtin(self, action):
    self.builtin(action)
    return len(self.seen) + sum(self.seen[-3:])

  register("builtin", begin_builtin, keep_builtin)

  def begin_partial(self):
    self.partial = functools.partial(Part.add, Part(0))

  register("partial", begin_partial, lambda self, a: self.partial(a))

  def keep_number(self, action):
    type(self).number += action + 1
    return type(self).number

  register("class_number", lambda self: None, keep_number, number=0)

  def keep_shared(self, action):
    self.shared.append(action)
    return len(self.shared)

  register("class_list", lambda self: None, keep_shared, shared=[])

  def begin_running(self):
    def numbers():
      for number in itertools.count():
        yield number % 7

    self.running = numbers()

  register("running", begin_running, lambda self, a: next(self.running) + a)

  def begin_ended(self):
    self.ended = (number for number in range(5))

  register("ended", begin_ended, lambda self, a: next(self.ended, -1))

  def begin_iterator(self):
    self.iterator = itertools.count()

  register("iterator", begin_iterator, lambda s, a: next(s.iterator) * a)

  def begin_mode(self):
    self.mode = Mode.ODD

  def keep_mode(self, action):
    self.mode = Mode.EVEN if action else Mode.ODD
    return self.mode.value

  register("mode", begin_mode, keep_mode)
  return made


GLOBAL = {"number": 0}
GENERATOR = np.random.default_rng()


class _Global:
  """Keeps its state where no attribute shows it."""

  def keep(self, action):
    GLOBAL["number"] += action + 1
    return GLOBAL["number"]


class _Unseeded:
  """Draws from a generator that no seed of a run reaches."""

  def keep(self, action):
    return action + np.random.random()


class InReset:
  """Changes what it keeps at the beginning of an episode only."""

  def reset(self):
    """Draws a number for the episode."""
    self.number = self.draw()

  def keep(self, action):
    return self.number * (action + 1)


class _ResetGlobal(InReset):
  def draw(self):
    GLOBAL["number"] += 1
    return GLOBAL["number"]


class _ResetNumpy(InReset):
  def draw(self):
    return np.random.random()


class _ResetPython(InReset):
  def draw(self):
    return random.random()


class _ResetModule(InReset):
  def draw(self):
    return GENERATOR.random()


def _reset_space():
  """A class whose objects share a space, and draw from it."""

  class ResetSpace(InReset):
    space = gymnasium.spaces.Box(0, 1, [], np.float64)

    def draw(self):
      return self.space.sample()

  return ResetSpace()


class _Helped:
  """Keeps its state in what its module imports; see `odd_helper`."""

  def __init__(self, keep):
    self.take = keep
    self.steps = 0

  def keep(self, action):
    self.steps += 1
    return self.take(action)


def _add(container, key):
  container[key] = (container[key] + 1) % 100
  return container[key]


def _add_to(owner):
  owner.number += 1
  return owner.number


def _add_to_variable():
  odd_helper.VARIABLE.set(odd_helper.VARIABLE.get() + 1)
  return odd_helper.VARIABLE.get()


def _add_to_page():
  odd_helper.PAGE[0] = (odd_helper.PAGE[0] + 1) % 100
  return odd_helper.PAGE[0]


class _Viewing:
  """Has a view of an array that a module keeps."""

  def __init__(self):
    self.view = odd_helper.VIEWED[1:3]

  def keep(self, action):
    self.view += action + 1
    return float(odd_helper.VIEWED[1])


class _Listing:
  """Has a list that a module keeps."""

  def __init__(self):
    self.listed = odd_helper.LISTED

  def keep(self, action):
    self.listed.append(action)
    return len(odd_helper.LISTED)


class _Entropy(InReset):
  """Makes a generator without a seed, whose draw shows late in an episode."""

  def __init__(self):
    self.steps = 0

  def draw(self):
    self.steps = 0
    return np.random.default_rng().random()

  def keep(self, action):
    self.steps += 1
    return self.number if self.steps > 9 else action


class _Cached:
  """Asks a cache, whose content is another in each process."""

  def __init__(self):
    self.steps = 0

  def keep(self, action):
    self.steps += 1
    return odd_helper.drawn(self.steps) if self.steps > 30 else action


class _Squared(_Cached):
  """Asks a cache that changes nothing."""

  def keep(self, action):
    self.steps += 1
    return odd_helper.squared(self.steps) + action


class _LateHelper(_Cached):
  """Draws late from a generator that a helper keeps."""

  def keep(self, action):
    self.steps += 1
    return odd_helper.GENERATOR.random() if self.steps > 30 else action


# Each keeps something in another way; called with an action.
_HELPED = {
  "helper_numbers": lambda a: _add(odd_helper.NUMBERS, "number") + a,
  "helper_cycle": lambda a: next(odd_helper.CYCLE) + a,
  "helper_chain": lambda a: next(odd_helper.CHAIN) * a,
  "helper_array": lambda a: _add(odd_helper.ARRAY, 0) + a,
  "helper_buffer": lambda a: _add(odd_helper.BUFFER, 1) + a,
  "helper_page": lambda a: _add_to_page() + a,
  "helper_space": lambda a: _add_to(odd_helper.SPACE) + a,
  "helper_enum": lambda a: _add_to(odd_helper.Color.RED) + a,
  "helper_slots": lambda a: _add_to(odd_helper.SLOTTED) + a,
  "helper_class": lambda a: _add_to(odd_helper.Counting) + a,
  "helper_closure": lambda a: odd_helper.count() + a,
  "helper_running": lambda a: next(odd_helper.RUNNING) + a,
  "helper_variable": lambda a: _add_to_variable() + a,
  "helper_stream": lambda a: odd_helper.STREAMS["nested"][0].random() + a,
  "helper_generator": lambda a: odd_helper.GENERATOR.random() + a,
}

_UNSEEN = {
  **{n: functools.partial(_Helped, keep) for n, keep in _HELPED.items()},
  "helper_view": _Viewing,
  "helper_list": _Listing,
  "entropy": _Entropy,
  "cached": _Cached,
  "late_helper": _LateHelper,
  "global": _Global,
  "unseeded": _Unseeded,
  "reset_global": _ResetGlobal,
  "reset_numpy": _ResetNumpy,
  "reset_python": _ResetPython,
  "reset_module": _ResetModule,
  "reset_space": _reset_space,
}
KINDS = sorted([*kinds(), "squared", *_UNSEEN])
# What no walk through attributes can see, and what of it no seed reaches: the
# name of the generator that it draws from, as a pattern.
UNSEEN = frozenset(_UNSEEN)
UNSEEDED = {
  "unseeded": "numpy.random",
  "reset_numpy": "numpy.random",
  "reset_python": "random",
  "reset_module": "odd_environments.GENERATOR",
  "reset_space": "ResetSpace.space",
  "helper_stream": "odd_helper.STREAMS",
  "helper_generator": "odd_helper.GENERATOR",
  "entropy": r"environment.envs.kept|default_rng\(\) \(odd_environments",
  "cached": "odd_helper.drawn",
  "late_helper": "odd_helper.GENERATOR",
}
# These change nothing before their 31st step.
LATE = frozenset({"cached", "late_helper"})


class Odd(gymnasium.Env):
  """Its rewards show what its parts keep."""

  observation_space = gymnasium.spaces.Box(-1e9, 1e9, [1], np.float64)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self, kept):
    self.kept = kept
    self.steps = 0

  def reset(self, *, seed=None, options=None):
    """Begins an episode; what is kept stays, but for those that reset it."""
    super().reset(seed=seed)
    for part in self.kept.values():
      if isinstance(part, InReset):
        part.reset()
    return np.array([float(self.steps)]), {}

  def step(self, action):
    """Lets every part keep something."""
    self.steps += 1
    reward = float(sum(part.keep(int(action)) for part in self.kept.values()))
    ended = self.steps % 13 == 0
    return np.array([reward]), reward, ended, False, {}


def make(names):
  """A new environment, as a new process would make it."""
  global GENERATOR
  GLOBAL["number"] = 0
  GENERATOR = np.random.default_rng()
  importlib.reload(odd_helper)
  np.random.seed()
  random.seed()
  made = {**kinds(), "squared": _Squared, **_UNSEEN}
  return Odd({name: made[name]() for name in names})
