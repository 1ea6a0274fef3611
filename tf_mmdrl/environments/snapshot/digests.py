"""Digests of values of any kind, to tell whether they have changed.

`capture` refuses what it could not put back. A digest only has to be another
one when a value is another one, so it looks further: into closures, running
generators, iterators, caches, weak references, buffers and slots. It is equal
in all processes, so nothing of it depends on addresses or the order of a set.
"""

import collections
import contextvars
import functools
import gc
import hashlib
import inspect
import itertools
import threading
import time
import types
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

import gymnasium
import numpy as np

from tf_mmdrl.environments.snapshot import parts

_LIBRARIES = {"array", "collections", "queue", "types", "weakref"}
_ITERATORS = (
  *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
  *(enumerate, filter, map, reversed, zip),
  *map(type, (iter([]), iter(()), iter({}), iter(range(0)), iter(""))),
)
_RUNNING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
CACHE = type(functools.lru_cache(lambda: None))
_MOST = 20_000  # values in one digest
_CLOCKS = (time.time, time.monotonic, time.perf_counter)
_BEGAN = [clock() for clock in _CLOCKS]


def digest(value: Any) -> str:
  """Short text; another one, but by chance, for a value that is another."""
  return _Digest().of(value).hex()


def lasting_digest(value: Any) -> Optional[str]:
  """As `digest`; None if there is a time of this process in the value."""
  walk = _Digest()
  found = walk.of(value).hex()
  return None if walk.has_clock else found


class _Digest:
  """One walk; what is met again gives what it gave before."""

  def __init__(self) -> None:
    self._known: Dict[int, bytes] = {}
    self._kept: List[Any] = []  # alive, so that no id is used twice
    self.has_clock = False

  def of(self, value: Any) -> bytes:
    if type(value) in parts.PLAIN:
      self.has_clock |= _is_clock(value)
      # Python reads and shows few digits of a number as decimals.
      return _hashed(hex(value) if type(value) is int else repr(value))
    known = self._known.get(id(value))
    if known is not None:
      return known
    if len(self._kept) >= _MOST:
      return b""
    self._known[id(value)] = b"itself"  # if it holds itself
    self._kept.append(value)
    seen = hashlib.blake2b(type(value).__qualname__.encode(), digest_size=8)
    try:
      for part in _parts(value):
        seen.update(part if isinstance(part, bytes) else self.of(part[0]))
    except RecursionError:
      pass  # what lies deeper is not looked at
    self._known[id(value)] = seen.digest()
    return seen.digest()


def _parts(value: Any) -> Iterator[Any]:
  """What a value consists of: bytes, and tuples (v,) of further values."""
  if isinstance(value, np.ndarray):
    yield repr((value.dtype.str, value.shape)).encode()
    if value.dtype.hasobject:
      yield from _each(value.ravel().tolist())
    else:
      yield np.ascontiguousarray(value).tobytes()
  elif isinstance(value, (np.generic, complex, bytes)):
    yield repr(value).encode()
  elif any(value is each for each in parts.OF_THE_PROCESS):
    yield b"of the process"  # which is looked at by itself
  elif parts.is_generator(value):
    yield (parts.generator_state(value),)
  elif isinstance(value, np.random.BitGenerator):
    yield (value.state,)
  elif isinstance(value, gymnasium.Space):
    yield from _each(parts.attributes(value, "").values())
  elif isinstance(value, dict):
    for key, item in [*value.items()]:
      yield from ((key,), (item,))
  elif isinstance(value, (set, frozenset)):
    inside = _Digest()
    yield from sorted(inside.of(item) for item in value)
  elif isinstance(value, types.FunctionType):
    yield parts.constant_name(value).encode()
    for name, kept in parts.function_state(value):
      yield from ((name,), (kept,))
  elif isinstance(value, CACHE):
    yield from _each(cached(value))
  elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
    yield value.__name__.encode()
    yield (value.__self__,)
  elif parts.is_constant(value):
    yield parts.constant_name(value).encode()
  elif isinstance(value, (list, tuple, collections.deque)):
    yield from _each([*value])
  elif isinstance(value, functools.partial):
    yield from _each((value.func, value.args, value.keywords))
  elif isinstance(value, weakref.ref):
    yield (value(),)
  elif isinstance(value, contextvars.ContextVar):
    yield (value.get(None),)
  elif isinstance(value, _ITERATORS):
    yield from _each(value.__reduce__())
  elif isinstance(value, _RUNNING):
    yield from _running(value)
  else:
    yield from _object_parts(value)


def _object_parts(value: Any) -> Iterator[Any]:
  """Of an object: its bytes if it shows them, its attributes and slots."""
  try:
    yield memoryview(value).tobytes()
    return
  except (TypeError, ValueError, BufferError, NotImplementedError):
    pass
  if isinstance(value, (types.CellType, types.MappingProxyType)):
    yield from _each(value.values() if hasattr(value, "values") else ())
  package = parts.module_of(type(value)).split(".")[0]
  is_open = parts.may_keep(type(value)) or package in _LIBRARIES
  if is_open or isinstance(value, threading.local):
    for name, part in attributes(value):
      yield from ((name,), (part,))


def attributes(value: Any) -> Iterator[Tuple[str, Any]]:
  """The attributes of an object and its slots, with their names."""
  inside = inspect.getattr_static(type(value), "__dict__", None)
  if inside is not None and hasattr(value, "__dict__"):
    yield from [*vars(value).items()]
  for kind in type(value).__mro__:
    if "__slots__" not in vars(kind):  # it may be written in C
      continue
    for name, slot in vars(kind).items():
      if isinstance(slot, types.MemberDescriptorType):
        try:
          yield name, slot.__get__(value)
        except AttributeError:  # it is empty
          continue


def cached(cache: Any) -> List[Any]:
  """The keys and values that a `functools.lru_cache` holds."""
  function = getattr(cache, "__wrapped__", None)
  return [
    part
    for part in gc.get_referents(cache)
    if part is not function and type(part) not in (type, object)
  ]


def _running(value: Any) -> Iterator[Any]:
  """Where a generator is, and its variables, also those without a name."""
  yield value.__qualname__.encode()
  kind = next(n for n in ("gi", "cr", "ag") if hasattr(value, f"{n}_frame"))
  frame = getattr(value, f"{kind}_frame")
  if frame is not None:  # it has not ended
    yield str(frame.f_lasti).encode()
    yield from _each(gc.get_referents(value))


def _each(values: Any) -> Iterator[Any]:
  return ((value,) for value in values)


def _hashed(text: str) -> bytes:
  return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()


def _is_clock(value: Any) -> bool:
  """Whether a number is a time since this process began.

  Many environments note when they began, to show how fast they are.
  """
  return isinstance(value, float) and any(
    began <= value <= clock() for began, clock in zip(_BEGAN, _CLOCKS)
  )
