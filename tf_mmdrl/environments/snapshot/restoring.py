"""Gives an object the state that `snapshot.capture` took from another one.

Nothing is imported and no code of a state is run: what a state names must be
there already, in the object itself or in the packages that it is made of.
"""

import collections
import functools
import sys
import types
from typing import Any, Optional

import gymnasium
from gymnasium import vector

from tf_mmdrl.core import errors
from tf_mmdrl.environments.checked import Checked
from tf_mmdrl.environments.snapshot import capturing, parts

_ENVIRONMENTS = (gymnasium.Env, vector.VectorEnv)


def restore(target: Any, state: Any) -> Any:
  """Gives the target, in place, the state captured from another object.

  Args:
    target: an object made in the same way; plain values may be None.
    state: what `capture` returned.

  Returns:
    The target, or the value itself where the state is that of a plain value.
  """
  return _Restore().decode(state, target, "environment")


class _Restore:
  """One walk through a state beside the object that receives it."""

  def __init__(self):
    self._made: dict[int, Any] = {}
    self._taken: list[Any] = []  # targets that stand for a part already
    self._packages: set[str] = set()  # of the objects met so far

  def decode(self, state: Any, target: Any, path: str) -> Any:
    if not isinstance(state, dict):
      return state
    if isinstance(target, Checked):
      self.decode(state, target.env, path)
      return target
    kind = state["kind"]
    if kind == "constant":
      return self._decode_constant(state, target, path)
    if kind == "method":
      return self._decode_method(state, target, path)
    if kind == "partial":
      return self._decode_partial(state, target, path)
    if kind == "enum":
      return self._class(state["class"], target, path)[state["name"]]
    if kind == "scalar":
      return parts.decode_array(state)[()]
    if kind == "same":
      return self._made[state["index"]]
    if kind == "object":
      return self._decode_object(state, target, path)
    if kind in ("list", "deque", "dict"):
      return self._decode_container(kind, state, target, path)
    made = self._decode_part(kind, state, target, path)
    self._made[state["index"]] = made
    return made

  def _decode_part(self, kind: str, state: Any, target: Any, path: str) -> Any:
    if kind == "array":
      return parts.decode_array(state)
    if kind == "generator":
      inner = self.decode(state["state"], None, path)
      old = "RandomState" if "has_gauss" in inner else "Generator"
      return parts.make_generator(state.get("class", old), inner)
    items = self._decode_items(state["items"], target, path)
    return tuple(items) if kind == "tuple" else set(items)

  def _decode_container(
    self, kind: str, state: Any, target: Any, path: str
  ) -> Any:
    # Known before it is filled: what it holds may hold it in turn.
    made: Any = {} if kind == "dict" else []
    if kind == "deque":
      made = collections.deque(maxlen=state["maxlen"])
    self._made[state["index"]] = made
    if kind == "dict":
      old = target if isinstance(target, dict) else {}
      for key_state, item in state["items"]:
        key = self.decode(key_state, None, path)
        made[key] = self.decode(item, old.get(key), f"{path}[{key!r}]")
    else:
      made.extend(self._decode_items(state["items"], target, path))
    return made

  def _decode_items(
    self, items: list[Any], target: Any, path: str
  ) -> list[Any]:
    sequence = isinstance(target, (list, tuple, collections.deque))
    old = target if sequence else ()
    padded = [*old, *[None] * (len(items) - len(old))]
    return [
      self.decode(item, part, f"{path}[{index}]")
      for index, (item, part) in enumerate(zip(items, padded))
    ]

  def _decode_constant(self, state: Any, target: Any, path: str) -> Any:
    if not parts.same_constant(state, target):
      found = self._find(f"{state.get('module')}.{state['name']}")
      if not parts.same_constant(state, found):
        raise _cannot(path, state["name"], parts.constant_name(target))
      return found
    if isinstance(target, types.GeneratorType):
      target.close()  # as if it had run to its end, as the captured one has
    return target

  def _decode_method(self, state: Any, target: Any, path: str) -> Any:
    old = getattr(target, "__self__", None)
    owner = self.decode(state["self"], old, f"{path}.__self__")
    method = getattr(owner, state["name"], None)
    if getattr(method, "__self__", None) is not owner:
      raise _cannot(path, state["name"], type(owner).__qualname__)
    return method

  def _decode_partial(self, state: Any, target: Any, path: str) -> Any:
    func, args, keywords = (
      self.decode(state[name], getattr(target, name, None), f"{path}.{name}")
      for name in ("func", "args", "keywords")
    )
    return functools.partial(func, *args, **keywords)

  def _decode_object(self, state: Any, target: Any, path: str) -> Any:
    kind = self._class(state["class"], target, path)
    self._packages.add(_package(kind))
    for name, digest in state.get("shared", {}).items():
      if capturing.shared_state(kind).get(name) != digest:
        raise errors.UserError(
          f"{path} shares {name} with all objects of its class, and it has"
          " changed; keep it in the object itself"
        )
    taken = any(target is other for other in self._taken)
    if taken or type(target) is not kind:
      if not parts.is_plain_class(kind) or issubclass(kind, gymnasium.Space):
        raise _cannot(path, state["class"], _name_of(target))
      target = object.__new__(kind)
    self._taken.append(target)
    self._made[state["index"]] = target
    old = parts.attributes(target, path)
    for name in old.keys() - state["parts"].keys():
      del vars(target)[name]
    for name, part in state["parts"].items():
      made = self.decode(part, old.get(name), f"{path}.{name}")
      vars(target)[name] = made
    return target

  def _class(self, name: str, target: Any, path: str) -> Any:
    """The class of a name: the target's, or one of the same packages."""
    if parts.class_name(type(target)) == name:
      return type(target)
    kind = self._find(name)
    if (
      kind is None
      or isinstance(target, _ENVIRONMENTS)
      or issubclass(kind, _ENVIRONMENTS)
    ):
      raise _cannot(path, name, _name_of(target))
    return kind

  def _find(self, name: str) -> Optional[Any]:
    """What has this name in the packages of the objects met so far."""
    words = name.split(".")
    if words[0] not in self._packages:
      return None
    for length in range(len(words) - 1, 0, -1):
      found: Any = sys.modules.get(".".join(words[:length]))
      for word in words[length:]:
        found = None if found is None else vars(found).get(word)
      if found is not None:
        return found
    return None


def _package(kind: type) -> str:
  return parts.module_of(kind).split(".")[0]


def _name_of(value: Any) -> str:
  return parts.class_name(type(value))


def _cannot(path: str, wanted: str, came: str) -> errors.UserError:
  return errors.UserError(
    f"this state needs {wanted} as {path}, but here is {came}; load the same"
    " environment with the same options"
  )
