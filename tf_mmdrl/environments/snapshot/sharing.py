"""What an environment shares with others, and so keeps in no attribute.

NumPy's and Python's own generators are the whole process's, and what a class or
a module keeps is every environment's. It is no part of an environment's state,
and no seed of a run reaches it; but that an environment changed it can be told,
and generators can be put where they were.
"""

import contextvars
import threading
import types
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import gymnasium
import numpy as np
from gymnasium import vector

from tf_mmdrl.core import whole_files
from tf_mmdrl.environments.snapshot import (
  capturing,
  digests,
  parts,
  reachable,
  restoring,
  sources,
)

# Other threads do not see what these hold.
_OF_THREADS = (threading.local, contextvars.ContextVar)
_PRIVATE = (property, types.MemberDescriptorType, types.GetSetDescriptorType)
_ENVIRONMENTS = (gymnasium.Env, vector.VectorEnv)
_TIMED = gymnasium.wrappers.RecordEpisodeStatistics
_DONE = "env_fns"  # they made environments, and hold nothing any more
_WRAPPED = "env"  # an environment in another one
_DIGITS = 16


def generators(environment: Any) -> Dict[str, Any]:
  """The random generators that an environment may share, by name.

  NumPy's and Python's own, and what the classes of its parts, and the modules
  that these reach, keep; spaces are generators, too. So is, here, what each
  thread sees for itself: only who plays can look at it.
  """
  return {
    name: value for name, value in _shared(environment) if _is_looked_at(value)
  }


def _is_looked_at(value: Any) -> bool:
  more = (gymnasium.Space, *_OF_THREADS)
  return parts.is_generator(value) or isinstance(value, more)


def states(found: Dict[str, Any]) -> Dict[str, Any]:
  """Where each generator is; equal states are equal values."""
  return {name: _state(value) for name, value in found.items()}


def held(found: Dict[str, Any]) -> Dict[str, Any]:
  """Where each generator is as JSON values, for `put`; but not of spaces."""
  return {
    name: capturing.capture(parts.generator_state(value))
    for name, value in found.items()
    if parts.is_generator(value)
  }


def put(found: Dict[str, Any], where: Dict[str, Any]) -> None:
  """Puts generators where they were; others stay where they are."""
  for name in found.keys() & where.keys():
    state = restoring.restore(None, where[name])
    parts.set_generator_state(found[name], state)


def named_digests(environment: Any, names: Iterable[str]) -> Dict[str, str]:
  """What is shared under these names, as digests; equal in all processes."""
  wanted = frozenset(names)
  return {
    name: whole_files.digest(_text(value).encode())
    for name, value in _shared(environment)
    if name in wanted
  }


def texts(environment: Any) -> Dict[str, str]:
  """Digests of all that is shared and may change, other than generators.

  What holds a time of this process is left out.
  """
  found = {
    name: digests.lasting_digest(value)
    for name, value in _shared(environment)
    if not _is_quiet(value)
  }
  return {name: text for name, text in found.items() if text is not None}


def changed(before: Dict[str, str], after: Dict[str, str]) -> List[str]:
  """The names of what is another after than before, of what was there."""
  return [n for n in after if before.get(n, after[n]) != after[n]]


def parts_of(environment: Any, names: Iterable[str]) -> List[str]:
  """Those of what is shared under some names that are parts of it, too.

  After a state is restored they are not, for its parts are made anew then.
  """
  seen = reachable.walk(environment)
  arrays = [part for part in seen.values() if isinstance(part, np.ndarray)]
  wanted = frozenset(names)
  return [
    name
    for name, value in _shared(environment)
    if name in wanted
    and (
      id(value) in seen
      or isinstance(value, np.ndarray)
      and any(np.may_share_memory(value, part) for part in arrays)
    )
  ]


def lasting(
  environment: Any, found: Dict[str, str], without: Iterable[str]
) -> Dict[str, str]:
  """`texts` to be kept with a state, short; not under some names.

  Of modules only what the code of the environment names: they may keep much
  else that is another in each process.
  """
  kinds, _ = reachable.watched(environment)
  of_classes = tuple(f"{kind.__qualname__}." for kind in kinds)
  named = sources.names(environment)
  return {
    name: found[name][:_DIGITS]
    for name in sorted(found.keys() - set(without))
    if name in named or name.startswith(of_classes)
  }


def attributes(environment: Any) -> Dict[str, str]:
  """Digests of the attributes of environments, those of a batch together.

  What holds a time of this process is left out: it is another one each time,
  and is noted to show how fast an environment is. Of Gymnasium's environments
  only; ale-py's keep nothing in Python.
  """
  found: Dict[str, List[Optional[str]]] = {}
  seen: Set[int] = set()
  root = getattr(environment, "gymnasium_env", ())
  todo: List[Tuple[str, Any]] = [("environment", root)]
  while todo:
    path, value = todo.pop()
    value = parts.unwrapped(value)
    inside = value if isinstance(value, (list, tuple)) else [value]
    if inside and all(isinstance(each, _ENVIRONMENTS) for each in inside):
      for each in map(parts.unwrapped, inside):
        if id(each) not in seen and not isinstance(each, _TIMED):
          seen.add(id(each))
          own = digests.attributes(each)
          for name, part in own:
            if name != _DONE:
              inner = path if name == _WRAPPED else f"{path}.{name}"
              todo.append((inner, part))
    else:
      found.setdefault(path, []).append(digests.lasting_digest(value))
  return {
    name: whole_files.digest(" ".join(map(str, each)).encode())[:_DIGITS]
    for name, each in sorted(found.items())
    if None not in each
  }


def _is_quiet(value: Any) -> bool:
  """Whether a value is a constant, or is looked at elsewhere."""
  if _is_looked_at(value) or isinstance(value, _PRIVATE):
    return True
  if isinstance(value, digests.CACHE):
    keys = digests.cached(value)
    plain = all(isinstance(k, (*parts.PLAIN, tuple, dict)) for k in keys)
    return plain and sources.is_pure(value.__wrapped__)
  if isinstance(value, types.FunctionType):
    return next(parts.function_state(value), None) is None
  return parts.is_constant(value)


def _text(value: Any) -> str:
  if _is_looked_at(value):
    return repr(_state(value))
  return digests.digest(value)


def _state(value: Any) -> Any:
  if isinstance(value, _OF_THREADS):
    return digests.digest(value)
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
  yield from zip(("numpy.random", "random"), parts.OF_THE_PROCESS)
  yield from reachable.shared(environment)
