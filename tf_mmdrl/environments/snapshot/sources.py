"""What the code of an environment asks that no seed of a run decides.

Clocks, the system's entropy, generators that are made without a seed, files
that are written, the order of hashes: whether they decide what an environment
returns cannot be known from its code, but that they are asked can.
"""

import builtins
import datetime
import dis
import os
import pathlib
import random
import re
import secrets
import sys
import time
import types
import uuid
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

import numpy as np

from tf_mmdrl.environments.snapshot import parts, reachable

_PLAIN_SOURCES = {
  **{
    f"time.{name}": getattr(time, name)
    for name in (
      *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"),
      *("perf_counter_ns", "process_time", "localtime", "gmtime", "ctime"),
    )
  },
  "datetime.now": datetime.datetime.now,
  "datetime.utcnow": datetime.datetime.utcnow,
  "datetime.today": datetime.datetime.today,
  "os.urandom": os.urandom,
  "os.getpid": os.getpid,
  "os.environ": os.environ,
  "random.SystemRandom": random.SystemRandom,
  "secrets": secrets,
  "uuid": uuid,
  "hash": builtins.hash,
  "id": builtins.id,
}
# Only without an argument: then the system's entropy is their seed.
_UNSEEDED = {
  "random.Random()": random.Random,
  "random.seed()": random.seed,
  "numpy.random.default_rng()": np.random.default_rng,
  "numpy.random.RandomState()": np.random.RandomState,
  "numpy.random.SeedSequence()": np.random.SeedSequence,
  "numpy.random.seed()": np.random.seed,
}
_WRITING = re.compile(r"[rbt]*[wax+][rbtwax+]*")  # a mode of `open`
_WRITERS = {"write_text", "write_bytes", "tofile", "savez", "dump"}
# What is made with an environment is in its state, or compared. To be a key a
# part must ask for hashes; the order of a set is what is refused.
_QUIET = {"__init__", "close", "__del__", "__repr__", "__str__", "__hash__"}
_SHOWS = "render"  # in the name of what only shows, as in `_render_frame`
_DOTS = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")
_CLOSE = 30  # instructions in which the arguments of a call are


class Source(NamedTuple):
  """Something that no seed decides, and where the code names it."""

  name: str
  place: str


class _Named(NamedTuple):
  """A value that code names.

  Attributes:
    value: of the name.
    name: with its module, if a module holds it.
    at: the number of the instruction that names it.
  """

  value: Any
  name: str
  at: int


def found(environment: Any) -> List[Source]:
  """What the environment's methods name, and the functions that these name."""
  sources: Dict[str, Source] = {}
  for function in _reached(environment):
    for source in _in_function(function):
      sources.setdefault(source.name, source)
  return [sources[name] for name in sorted(sources)]


def names(environment: Any) -> Set[str]:
  """What these methods and functions name of modules, as `module.name`."""
  return {
    named.name
    for function in _reached(environment)
    for named in _all_named(function)
  }


def _reached(environment: Any) -> Iterator[types.FunctionType]:
  """The environment's methods, and the functions that these name."""
  kinds, modules = reachable.watched(environment)
  own = {module.__name__ for module in modules}
  todo = [f for kind in kinds for f in _methods(kind)]
  done: Set[int] = set()
  while todo:
    function = todo.pop(0)
    if id(function) in done:
      continue
    done.add(id(function))
    yield function
    for named in _all_named(function):
      if getattr(named.value, "__module__", None) in own:
        todo.extend(_callables(named.value))


def is_pure(function: Any) -> bool:
  """Whether a function, by its code, gives equals for equals.

  It and all that it names name nothing that changes or cannot be known.
  """
  todo, done = [function], set()
  while todo:
    each = todo.pop()
    if id(each) in done:
      continue
    done.add(id(each))
    if not isinstance(each, types.FunctionType):
      return False
    if next(parts.function_state(each), None) or any(_in_function(each)):
      return False
    for named in _all_named(each):
      value = named.value
      if isinstance(value, types.FunctionType):
        todo.append(value)
      elif not _is_fixed(value):
        return False
  return True


def _is_fixed(value: Any) -> bool:
  if isinstance(value, type):
    return not parts.may_keep(value)
  plain = (*parts.PLAIN, tuple, bytes)
  return type(value) in plain or parts.is_constant(value)


def _methods(kind: type) -> Iterator[types.FunctionType]:
  for name, value in [*vars(kind).items()]:
    if name not in _QUIET and _SHOWS not in name:
      yield from reachable.functions_of(value)


def _callables(value: Any) -> Iterator[types.FunctionType]:
  if isinstance(value, type):
    yield from _methods(value)
  else:
    yield from reachable.functions_of(value)


def _in_function(function: types.FunctionType) -> Iterator[Source]:
  for code in reachable.codes(function):
    steps = [*dis.get_instructions(code)]
    place = pathlib.PurePath(code.co_filename).name
    for named in _named(code, function):
      name = _source(named, steps)
      if name is not None:
        line = getattr(steps[named.at], "positions", None)
        number = line.lineno if line else code.co_firstlineno
        yield Source(name, f"{place}:{number}")
    if _WRITERS.intersection(code.co_names):
      (writer,) = [*_WRITERS.intersection(code.co_names)][:1]
      yield Source(writer, f"{place}:{code.co_firstlineno}")


def _source(named: _Named, steps: List[dis.Instruction]) -> Optional[str]:
  if isinstance(named.value, random.SystemRandom):
    return "random.SystemRandom"
  after = steps[named.at + 1 :]
  for name, value in _PLAIN_SOURCES.items():
    if _same(named.value, value):
      return name
  for name, value in _UNSEEDED.items():
    if _same(named.value, value):
      return name if _is_called_bare(after) else None
  if named.value is builtins.open:
    for step in after[:_CLOSE]:
      text = step.argval if step.opname == "LOAD_CONST" else None
      if isinstance(text, str) and _WRITING.fullmatch(text):
        return f'open(..., "{text}")'
      if step.opname == "CALL":
        break
  return None


def _same(one: Any, other: Any) -> bool:
  # Methods of one object are made anew each time that they are looked up.
  both = callable(one) and callable(other)
  return one is other or both and bool(one == other)


def _is_called_bare(after: List[dis.Instruction]) -> bool:
  for step in after:
    if step.opname.startswith("CALL"):
      return step.arg == 0
    if step.opname not in ("PRECALL", "CACHE", "PUSH_NULL"):
      return False
  return False


def _all_named(function: types.FunctionType) -> Iterator[_Named]:
  for code in reachable.codes(function):
    yield from _named(code, function)


def _named(
  code: types.CodeType, function: types.FunctionType
) -> Iterator[_Named]:
  """The values of the global names in code, and of what dots lead to."""
  closure = {}
  for name, cell in zip(
    function.__code__.co_freevars, function.__closure__ or ()
  ):
    try:
      closure[name] = cell.cell_contents
    except ValueError:  # it is empty
      continue
  here = function.__globals__
  imported: Dict[str, Any] = {}
  nothing = object()
  value: Any = nothing
  for at, step in enumerate(dis.get_instructions(code)):
    before, name, module = value, step.argval, None
    value = nothing
    if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL"):
      value = here.get(name, vars(builtins).get(name, nothing))
      module = here.get("__name__")
    elif step.opname == "LOAD_DEREF":
      value = closure.get(name, nothing)
    elif step.opname == "LOAD_FAST":
      value = imported.get(name, nothing)
    elif step.opname == "IMPORT_NAME":
      value = sys.modules.get(name, nothing)
    elif step.opname == "STORE_FAST" and before is not nothing:
      imported[name] = before
    elif step.opname in _DOTS and isinstance(before, (types.ModuleType, type)):
      value = getattr(before, name, nothing)
      module = getattr(before, "__name__", None)
    if value is not nothing:
      yield _Named(value, f"{module}.{name}", at)
