"""What the code of an environment can reach beside its attributes.

The classes of its parts, the modules of these classes, and what of the same
package, or of other files of the user's, these modules and their functions
name, by an import anywhere. What an installed library keeps is not looked at.
"""

import functools
import gc
import os
import sys
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import gymnasium
import numpy as np
from gymnasium import vector

from tf_mmdrl.environments.snapshot import parts

_MOST = 10_000  # objects that are looked at
_ENDS = (types.ModuleType, types.FunctionType, type, np.ndarray)
# Known to keep nothing that changes how an environment goes on.
_KNOWN = {"tf_mmdrl", "tf_agents", "tensorflow", "gymnasium", "numpy"}
_INSTALLED = ("site-packages", "dist-packages", os.path.dirname(os.__file__))


def walk(root: Any) -> Dict[int, Any]:
  """An object and its parts, by their ids."""
  seen: Dict[int, Any] = {}
  todo = [root]
  while todo and len(seen) < _MOST:
    value = todo.pop()
    if id(value) in seen or type(value) in parts.PLAIN:
      continue
    seen[id(value)] = value
    if isinstance(value, types.FunctionType):
      todo.extend(value.__closure__ or ())
    if not isinstance(value, _ENDS) and not _is_namespace(value):
      todo.extend(gc.get_referents(value))
  return seen


def classes(root: Any) -> List[type]:
  """Those of an object and its parts, their bases and what made them."""
  kinds: Set[type] = set()
  for value in walk(root).values():
    if not isinstance(value, _ENDS) and not _is_namespace(value):
      for kind in type(value).__mro__:
        kinds.update(filter(parts.may_keep, (kind, type(kind))))
  return sorted(kinds, key=parts.class_name)


def watched(root: Any) -> Tuple[List[type], List[types.ModuleType]]:
  """Classes and modules whose contents may change how an object goes on.

  Classes of its parts that are the user's own or of an environment's package;
  their modules, and those that these name. All by name.
  """
  all_kinds = classes(root)
  packages = {
    _package(parts.module_of(kind))
    for kind in all_kinds
    if issubclass(kind, (gymnasium.Env, vector.VectorEnv))
  } - _KNOWN

  def is_watched(name: str) -> bool:
    return _package(name) in packages or _is_own(name, sys.modules.get(name))

  kinds = [kind for kind in all_kinds if is_watched(parts.module_of(kind))]
  todo = [parts.module_of(kind) for kind in kinds]
  # Others would only seem to name the script that was started.
  found: Dict[str, Optional[types.ModuleType]] = {}
  if "__main__" not in todo:
    found["__main__"] = None
  while todo:
    name = todo.pop()
    module = sys.modules.get(name)
    if module is not None and name not in found and is_watched(name):
      found[name] = module
      todo.extend(_named(module))
  return kinds, [m for _, m in sorted(found.items()) if m is not None]


def functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
  """Those that a module makes, methods too."""
  for value in [*vars(module).values()]:
    if getattr(value, "__module__", None) == module.__name__:
      yield from functions_of(value)


def functions_of(value: Any) -> Iterator[types.FunctionType]:
  """Those of a class, or the one that a method or a cache is made of."""
  if isinstance(value, type):
    for inner in [*vars(value).values()]:
      if not isinstance(inner, type):  # which may be the class itself
        yield from functions_of(inner)
    return
  for name in ("__func__", "fget", "func", "__wrapped__"):
    value = getattr(value, name, value)
  if isinstance(value, types.FunctionType):
    yield value


def codes(function: types.FunctionType) -> Iterator[types.CodeType]:
  """A function's code, and that of the functions inside it."""
  todo = [function.__code__]
  while todo:
    code = todo.pop()
    yield code
    todo.extend(c for c in code.co_consts if isinstance(c, types.CodeType))


def _named(module: types.ModuleType) -> Iterator[str]:
  """Names that may be those of modules, in a module and its functions."""
  for value in [*vars(module).values()]:
    if isinstance(value, types.ModuleType):
      yield value.__name__
    elif isinstance(value, (type, types.FunctionType)):
      yield parts.module_of(value)  # type: ignore[arg-type]
    else:
      yield parts.module_of(type(value))
  package = getattr(module, "__package__", None) or ""
  for function in functions(module):
    for code in codes(function):
      for name in (*code.co_names, *code.co_consts):
        if isinstance(name, str):
          yield from (name, f"{package}.{name}")


def _package(name: str) -> str:
  return name.split(".")[0]


def _is_own(name: str, module: Optional[types.ModuleType]) -> bool:
  """Whether a module is neither of a library nor of Python."""
  package = _package(name)
  if package in _KNOWN or package in sys.stdlib_module_names:
    return name == "__main__"
  if name == "C" or package.startswith("_cython"):
    return False
  return _is_users_file(getattr(module, "__file__", None))


@functools.cache
def _is_users_file(file: Any) -> bool:
  return not (isinstance(file, str) and any(p in file for p in _INSTALLED))


def _is_namespace(value: Any) -> bool:
  """Whether a value is the variables of a module."""
  return isinstance(value, dict) and "__builtins__" in value


def shared(root: Any) -> Iterator[Tuple[str, Any]]:
  """What these classes and modules keep: names, values; constants, too."""
  kinds, found = watched(root)
  done: Set[type] = set()
  for kind in kinds:
    yield from _of_class(kind, kind.__qualname__, done)
  for module in found:
    for name, value in [*vars(module).items()]:
      if isinstance(value, type):
        if value.__module__ == module.__name__:
          path = f"{module.__name__}.{value.__qualname__}"
          yield from _of_class(value, path, done)
      elif not name.startswith("__"):
        yield f"{module.__name__}.{name}", value


def _of_class(
  kind: type, path: str, done: Set[type]
) -> Iterator[Tuple[str, Any]]:
  if kind in done:
    return
  done.add(kind)
  for name, value in [*vars(kind).items()]:
    if not name.startswith("__") and name != "_abc_impl":
      yield f"{path}.{name}", value
