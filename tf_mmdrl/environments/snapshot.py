"""The exact state of pure-Python objects as plain JSON values.

An environment written in Python keeps its state in attributes: numbers,
arrays, containers, random generators and further such objects. `capture`
reads them all; `restore` writes them back into an object of the same class,
in place. Whatever else it meets (a C++ emulator, a window, a process) it
refuses, so a captured state is never silently incomplete.

What two attributes share they share again after `restore`.
"""

import base64
import collections
import enum
import functools
import sys
import types
from typing import Any, Iterable

import gymnasium
import numpy as np
from gymnasium.envs import registration
from gymnasium.utils import seeding

from tf_mmdrl.core import errors

# Kept as they are; a state only holds their names, to be compared.
_CONSTANTS = (
  type,
  functools.partial,
  np.dtype,
  registration.EnvSpec,
  types.BuiltinFunctionType,
  types.FunctionType,
  types.MethodType,
  types.ModuleType,
)
_PLAIN = (bool, int, float, str, type(None))
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set"}


class CannotCaptureError(TypeError):
  """A part of an object that has no plain form; the text names it."""


def capture(value: Any) -> Any:
  """The state of an object, such that `json.dumps` takes it."""
  return _Capture().encode(value, "environment")


def restore(target: Any, state: Any) -> Any:
  """Gives the target, in place, the state captured from another object.

  Args:
    target: an object made in the same way; plain values may be None.
    state: what `capture` returned.

  Returns:
    The target, or the value itself where the state is that of a plain value.
  """
  return _Restore().decode(state, target)


class _Capture:
  """One walk through an object; each shared part is written once."""

  def __init__(self):
    self._seen: dict[int, int] = {}
    self._kept: list[Any] = []  # alive, so that no id is used twice

  def encode(self, value: Any, path: str) -> Any:
    if type(value) in _PLAIN:
      return value
    if _is_constant(value):
      return {"kind": "constant", "name": _constant_name(value)}
    if isinstance(value, enum.Enum):
      return {"kind": "enum", "class": _class_name(value), "name": value.name}
    if isinstance(value, np.generic):
      return {"kind": "scalar", **_encode_array(np.asarray(value), path)}
    if id(value) in self._seen:
      return {"kind": "same", "index": self._seen[id(value)]}
    index = self._seen[id(value)] = len(self._kept)
    self._kept.append(value)
    return {"index": index, **self._encode_part(value, path)}

  def _encode_part(self, value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
      self._refuse_overlap(value, path)
      return {"kind": "array", **_encode_array(value, path)}
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
      state = self.encode(_generator_state(value), path)
      return {"kind": "generator", "state": state}
    if type(value) in _SEQUENCES:
      return {
        "kind": _SEQUENCES[type(value)],
        "items": self._items(value, path),
      }
    if type(value) is collections.deque:
      items = self._items(value, path)
      return {"kind": "deque", "items": items, "maxlen": value.maxlen}
    if type(value) is dict:
      pairs = [
        [self.encode(key, path), self.encode(item, f"{path}[{key!r}]")]
        for key, item in value.items()
      ]
      return {"kind": "dict", "items": pairs}
    return self._encode_object(value, path)

  def _items(self, values: Iterable[Any], path: str) -> list[Any]:
    return [self.encode(v, f"{path}[{i}]") for i, v in enumerate(values)]

  def _encode_object(self, value: Any, path: str) -> dict[str, Any]:
    parts = {
      name: self.encode(part, f"{path}.{name}")
      for name, part in _attributes(value, path).items()
    }
    return {"kind": "object", "class": _class_name(value), "parts": parts}

  def _refuse_overlap(self, array: np.ndarray, path: str) -> None:
    for other in self._kept:
      if (
        isinstance(other, np.ndarray)
        and other is not array
        and np.may_share_memory(other, array)
      ):
        raise CannotCaptureError(f"{path} is a view of another array")


class _Restore:
  """One walk through a state beside the object that receives it."""

  def __init__(self):
    self._made: dict[int, Any] = {}

  def decode(self, state: Any, target: Any) -> Any:
    if not isinstance(state, dict):
      return state
    kind = state["kind"]
    if kind == "constant":
      _require("part", state["name"], _constant_name(target))
      return target
    if kind == "enum":
      _require("value", state["class"], _class_name(target))
      return type(target)[state["name"]]
    if kind == "scalar":
      return _decode_array(state)[()]
    if kind == "same":
      return self._made[state["index"]]
    if kind == "object":
      return self._decode_object(state, target)
    if kind in ("list", "deque", "dict"):
      return self._decode_container(kind, state, target)
    made = self._decode_part(kind, state, target)
    self._made[state["index"]] = made
    return made

  def _decode_part(self, kind: str, state: Any, target: Any) -> Any:
    if kind == "array":
      return _decode_array(state)
    if kind == "generator":
      return _set_generator(target, self.decode(state["state"], None))
    items = self._decode_items(state["items"], target)
    return tuple(items) if kind == "tuple" else set(items)

  def _decode_container(self, kind: str, state: Any, target: Any) -> Any:
    # Known before it is filled: what it holds may hold it in turn.
    made: Any = {} if kind == "dict" else []
    if kind == "deque":
      made = collections.deque(maxlen=state["maxlen"])
    self._made[state["index"]] = made
    if kind == "dict":
      old = target if isinstance(target, dict) else {}
      for key_state, item in state["items"]:
        key = self.decode(key_state, None)
        made[key] = self.decode(item, old.get(key))
    else:
      made.extend(self._decode_items(state["items"], target))
    return made

  def _decode_items(self, items: list[Any], target: Any) -> list[Any]:
    sequence = isinstance(target, (list, tuple, collections.deque))
    old = target if sequence else ()
    padded = [*old, *[None] * (len(items) - len(old))]
    return [self.decode(item, part) for item, part in zip(items, padded)]

  def _decode_object(self, state: dict[str, Any], target: Any) -> Any:
    _require("object", state["class"], _class_name(target))
    self._made[state["index"]] = target
    old, parts = _attributes(target, "environment"), state["parts"]
    for name in old.keys() - parts.keys():
      del vars(target)[name]
    for name, part in parts.items():
      vars(target)[name] = self.decode(part, old.get(name))
    return target


def _require(kind: str, wanted: str, came: str) -> None:
  if wanted != came:
    raise errors.UserError(
      f"this state needs the {kind} {wanted}, but here is {came}; load the same"
      " environment with the same options"
    )


def _constant_name(value: Any) -> str:
  return getattr(value, "__qualname__", _class_name(value))


def _is_constant(value: Any) -> bool:
  if isinstance(value, types.GeneratorType):
    return value.gi_frame is None  # it has run to its end
  return isinstance(value, _CONSTANTS)


class _Plain:
  """A class whose instances consist of their attributes and nothing else."""


def _attributes(value: Any, path: str) -> dict[str, Any]:
  """The attributes that make up an object, if they do."""
  if isinstance(value, gymnasium.Space):  # it can draw; the rest is constant
    names = {"_np_random", "spaces"} & vars(value).keys()
    return {name: vars(value)[name] for name in sorted(names)}
  kind = type(value)
  package = _module(kind).split(".")[0]
  if (
    package in sys.stdlib_module_names  # processes, pipes, locks, files
    or kind.__basicsize__ != _Plain.__basicsize__  # more than attributes: C
    or not hasattr(value, "__dict__")
  ):
    raise CannotCaptureError(f"{path} is a {_class_name(value)}")
  return dict(vars(value))


def _class_name(value: Any) -> str:
  return f"{_module(type(value))}.{type(value).__qualname__}"


def _module(kind: type) -> str:
  """Where a class is from; some that are written in C do not say (Box2D's)."""
  module = getattr(kind, "__module__", None)
  return module if isinstance(module, str) else "C"


def _encode_array(array: np.ndarray, path: str) -> dict[str, Any]:
  if array.dtype.hasobject:
    raise CannotCaptureError(f"{path} is an array of objects")
  data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
  return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _decode_array(state: dict[str, Any]) -> np.ndarray:
  flat = np.frombuffer(base64.b64decode(state["data"]), state["dtype"])
  return flat.reshape(state["shape"]).copy()


def _generator_state(generator: Any) -> Any:
  if isinstance(generator, np.random.RandomState):
    return generator.get_state(legacy=False)
  return generator.bit_generator.state


def _set_generator(generator: Any, state: dict[str, Any]) -> Any:
  """Sets a generator in place, or makes one where there is none yet."""
  if isinstance(generator, np.random.RandomState):
    generator.set_state(state)
    return generator
  if generator is None:
    generator, _ = seeding.np_random(0)
  generator.bit_generator.state = state
  return generator
