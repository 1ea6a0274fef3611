"""What an environment shares with others, and so keeps in no attribute.

NumPy's and Python's own generators are the whole process's, and what a class or
a module keeps is every environment's. It is no part of an environment's state,
and no seed of a run reaches it; but that an environment changed it can be told,
and generators can be put where they were.
"""

import collections
import json
import random
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Set, Tuple

import gymnasium
import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.environments.snapshot import capturing, parts, restoring

_GENERATORS = (*parts.GENERATORS, random.Random, gymnasium.Space)
_CONTAINERS = (list, tuple, set, frozenset, collections.deque)
_MOST = 10_000  # objects that are looked at
_NO_OBJECTS = (types.ModuleType, types.FunctionType, type, np.ndarray)


def generators(environment: Any) -> Dict[str, Any]:
  """The random generators that an environment may share, by name.

  NumPy's and Python's own, and what the classes of its parts, and the modules
  of these classes, keep; spaces are generators, too.
  """
  return {
    name: value
    for name, value in _shared(environment)
    if isinstance(value, _GENERATORS)
  }


def states(found: Dict[str, Any]) -> Dict[str, Any]:
  """Where each generator is; equal states are equal values."""
  return {name: _state(value) for name, value in found.items()}


def held(found: Dict[str, Any]) -> Dict[str, Any]:
  """Where each generator is as JSON values, for `put`; spaces are left out."""
  return {
    name: capturing.capture(parts.generator_state(value))
    for name, value in found.items()
    if not isinstance(value, gymnasium.Space)
  }


def put(found: Dict[str, Any], where: Dict[str, Any]) -> None:
  """Puts generators where they were; others stay where they are."""
  for name in found.keys() & where.keys():
    state = restoring.restore(None, where[name])
    parts.set_generator_state(found[name], state)


def digests(environment: Any, names: Iterable[str]) -> Dict[str, str]:
  """What is shared under these names, as digests; equal in all processes."""
  wanted = frozenset(names)
  return {
    name: whole_files.digest(_text(value).encode())
    for name, value in _shared(environment)
    if name in wanted
  }


def changes(environment: Any, act: Callable[[], Any]) -> List[str]:
  """The names of what is shared, other than constants, that `act` changes."""
  before = _texts(environment)
  act()
  after = _texts(environment)
  return [name for name in after if before.get(name) != after[name]]


def _texts(environment: Any) -> Dict[str, str]:
  return {
    name: _text(value)
    for name, value in _shared(environment)
    if not parts.is_constant(value)
  }


def _text(value: Any) -> str:
  if isinstance(value, _GENERATORS):
    return repr(_state(value))
  try:
    return json.dumps(capturing.capture(value))
  except parts.CannotCaptureError:
    return repr(value)


def _state(value: Any) -> Any:
  if isinstance(value, gymnasium.Space):
    inner = vars(value).get("spaces", ())
    held = inner.values() if isinstance(inner, dict) else inner
    own = vars(value).get("_np_random")
    return [None if own is None else _state(own), *map(_state, held)]
  return _comparable(parts.generator_state(value))


def _comparable(state: Any) -> Any:
  """A state without arrays, whose comparisons would be arrays, too."""
  if isinstance(state, dict):
    return {name: _comparable(part) for name, part in state.items()}
  return state.tobytes() if isinstance(state, np.ndarray) else state


def _shared(environment: Any) -> Iterator[Tuple[str, Any]]:
  """What the process, the classes of parts and their modules hold."""
  # The public functions are methods of the generators that they draw from.
  yield "numpy.random", getattr(np.random.get_state, "__self__")  # noqa: B009
  yield "random", getattr(random.getstate, "__self__")  # noqa: B009
  modules = set()
  for kind in _classes(environment):
    modules.add(parts.module_of(kind))
    for name, value in vars(kind).items():
      yield f"{kind.__qualname__}.{name}", value
  for module in sorted(modules & sys.modules.keys()):
    for name, value in [*vars(sys.modules[module]).items()]:
      if not name.startswith("__"):
        yield f"{module}.{name}", value


def _classes(root: Any) -> List[type]:
  """Those of an object and its parts, and their bases; none of a library."""
  seen: Dict[int, Any] = {}
  kinds: Set[type] = set()
  todo = [root]
  while todo and len(seen) < _MOST:
    value = todo.pop()
    if id(value) in seen or isinstance(value, _NO_OBJECTS):
      continue
    seen[id(value)] = value
    if isinstance(value, _CONTAINERS):
      todo.extend(value)
    elif isinstance(value, dict):
      todo.extend(value.values())
    elif hasattr(value, "__dict__"):
      todo.extend(vars(value).values())
      kinds.update(filter(parts.may_keep, type(value).__mro__))
  return sorted(kinds, key=parts.class_name)
