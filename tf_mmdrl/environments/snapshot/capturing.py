"""Reads the state of an object."""

import collections
import enum
import functools
import json
import random
import types
from typing import Any, Iterable

import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.environments.snapshot import parts
from tf_mmdrl.environments.snapshot.parts import CannotCaptureError

_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple"}
_BOUND = (types.MethodType, types.BuiltinMethodType)


_DIGITS = 4000  # of a number; Python reads few more as text


def capture(value: Any) -> Any:
  """The state of an object, such that `json.dumps` takes it."""
  try:
    return _Capture().encode(value, "environment")
  except RecursionError:
    raise CannotCaptureError(
      "environment holds parts within parts, too many for Python"
    ) from None


class _Capture:
  """One walk through an object; each shared part is written once."""

  def __init__(self):
    self._seen: dict[int, int] = {}
    self._kept: list[Any] = []  # alive, so that no id is used twice
    self._streams: dict[int, str] = {}  # of random numbers -> where
    self._classes: set[type] = set()

  def encode(self, value: Any, path: str) -> Any:
    value = parts.unwrapped(value)
    if type(value) in parts.PLAIN:
      if type(value) is int and value.bit_length() > 3 * _DIGITS:
        raise CannotCaptureError(f"{path} has more than {_DIGITS} digits")
      return value
    if parts.is_constant(value):
      return {"kind": "constant", **parts.describe_constant(value, path)}
    if isinstance(value, _BOUND):
      if getattr(value.__self__, value.__name__, None) != value:
        raise CannotCaptureError(
          f"{path} is bound to an object that has it not as {value.__name__}"
        )
      owner = self.encode(value.__self__, f"{path}.__self__")
      return {"kind": "method", "name": value.__name__, "self": owner}
    if type(value) is functools.partial:
      return self._encode_partial(value, path)
    if isinstance(value, enum.Enum):
      name = parts.class_name(type(value))
      return {"kind": "enum", "class": name, "name": value.name}
    if isinstance(value, np.generic):
      return {"kind": "scalar", **parts.encode_array(np.asarray(value), path)}
    if id(value) in self._seen:
      return {"kind": "same", "index": self._seen[id(value)]}
    index = self._seen[id(value)] = len(self._kept)
    self._kept.append(value)
    return {"index": index, **self._encode_part(value, path)}

  def _encode_part(self, value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
      self._refuse_overlap(value, path)
      return {"kind": "array", **parts.encode_array(value, path)}
    if type(value) in (*parts.GENERATORS, random.Random):
      self._refuse_shared_stream(value, path)
      state = self.encode(parts.generator_state(value), path)
      name = type(value).__name__
      return {"kind": "generator", "class": name, "state": state}
    if type(value) in _SEQUENCES:
      kind = _SEQUENCES[type(value)]
      return {"kind": kind, "items": self._items(value, path)}
    if type(value) is collections.deque:
      items = self._items(value, path)
      return {"kind": "deque", "items": items, "maxlen": value.maxlen}
    if type(value) is dict:
      pairs = [
        [self._key(key, path), self.encode(item, f"{path}[{key!r}]")]
        for key, item in value.items()
      ]
      return {"kind": "dict", "items": pairs}
    if isinstance(value, (set, frozenset)):
      raise CannotCaptureError(
        f"{path} is a set, whose order depends on its past"
      )
    return self._encode_object(value, path)

  def _items(self, values: Iterable[Any], path: str) -> list[Any]:
    return [self.encode(v, f"{path}[{i}]") for i, v in enumerate(values)]

  def _key(self, key: Any, path: str) -> Any:
    """A dict's key, which is made anew: of plain values only."""
    if not parts.is_plain_key(key):
      raise CannotCaptureError(f"{path} has a {type(key).__name__} as a key")
    return self.encode(key, path)

  def _encode_partial(self, value: Any, path: str) -> dict[str, Any]:
    if vars(value):
      raise CannotCaptureError(f"{path} is a partial with attributes")
    inner = (value.func, value.args, value.keywords)
    names = ("func", "args", "keywords")
    return {
      "kind": "partial",
      **{n: self.encode(v, f"{path}.{n}") for n, v in zip(names, inner)},
    }

  def _encode_object(self, value: Any, path: str) -> dict[str, Any]:
    found = {
      name: self.encode(part, f"{path}.{name}")
      for name, part in parts.attributes(value, path).items()
    }
    state = {"class": parts.class_name(type(value)), "parts": found}
    if type(value) not in self._classes:
      self._classes.add(type(value))
      state["shared"] = shared_state(type(value))
    return {"kind": "object", **state}

  def _refuse_overlap(self, array: np.ndarray, path: str) -> None:
    for other in self._kept:
      if (
        isinstance(other, np.ndarray)
        and other is not array
        and np.may_share_memory(other, array)
      ):
        raise CannotCaptureError(f"{path} is a view of another array")

  def _refuse_shared_stream(self, generator: Any, path: str) -> None:
    stream = id(parts.stream(generator))
    if stream in self._streams:
      raise CannotCaptureError(
        f"{path} draws from the same stream as {self._streams[stream]}"
      )
    self._streams[stream] = path


def shared_state(kind: type) -> dict[str, str]:
  """What a class itself keeps, beside its objects: name -> a digest.

  It cannot be restored, because other objects share it; but that it has
  changed can be told.
  """
  return {
    name: whole_files.digest(
      json.dumps(_Capture().encode(value, name), sort_keys=True).encode()
    )
    for name, value in parts.shared_values(kind)
  }
