"""What the parts of a snapshot are: constants, arrays, generators, objects."""

import base64
import functools
import random
import sys
import types
from typing import Any, Iterator

import gymnasium
import numpy as np
from gymnasium import vector
from gymnasium.envs import registration

from tf_mmdrl.environments.checked import Checked

PLAIN = (bool, int, float, str, type(None))
GENERATORS = (np.random.Generator, np.random.RandomState)
# NumPy's and Python's own; the public functions are methods of these.
OF_THE_PROCESS = (
  getattr(np.random.get_state, "__self__"),  # noqa: B009
  getattr(random.getstate, "__self__"),  # noqa: B009
)
# Kept as they are; a state only holds their names, to be compared.
_CONSTANTS = (type, np.dtype, registration.EnvSpec, types.ModuleType)
# Their classes keep nothing that changes how an environment goes on.
_STATELESS = {"gymnasium", "numpy"}


class CannotCaptureError(TypeError):
  """A part of an object that has no plain form; the text names it."""


def unwrapped(value: Any) -> Any:
  """What is checked, without the checking, which has no state."""
  return value.env if isinstance(value, Checked) else value


def is_constant(value: Any) -> bool:
  """Whether a value has a name and no state."""
  if isinstance(value, types.GeneratorType):
    return value.gi_frame is None  # it has run to its end
  if isinstance(value, types.BuiltinFunctionType):  # of a module, or bound
    return value.__self__ is None or isinstance(
      value.__self__, (type, types.ModuleType)
    )
  if isinstance(value, types.MethodType):  # a class's own
    return isinstance(value.__self__, type)
  return isinstance(value, (*_CONSTANTS, types.FunctionType))


def describe_constant(value: Any, path: str) -> dict[str, Any]:
  """`name`, and `module` where it has one; functions with more are refused."""
  found = {"name": constant_name(value)}
  if isinstance(value, types.FunctionType):
    kept = next(function_state(value), None)
    if kept is not None:
      raise CannotCaptureError(
        f"{path} is a function that keeps a variable of its own, {kept[0]}"
      )
    found["module"] = value.__module__
    found["code"] = _code(value)
  elif isinstance(value, type):
    found["module"] = module_of(value)
  return found


def constant_name(value: Any) -> str:
  """What tells constants apart."""
  if isinstance(value, types.ModuleType):
    return value.__name__
  return getattr(value, "__qualname__", class_name(type(value)))


def same_constant(state: dict[str, Any], value: Any) -> bool:
  """Whether a value is the constant that a state describes."""
  # An earlier version called every module by its class.
  names = (constant_name(value), class_name(type(value)))
  if state["name"] not in names:
    return False
  is_function = isinstance(value, types.FunctionType)
  return not is_function or state.get("code") in (None, _code(value))


def _code(function: types.FunctionType) -> str:
  """Tells lambdas apart, which are all called the same."""
  code = function.__code__
  plain = [value for value in code.co_consts if type(value) in PLAIN]
  return f"{code.co_firstlineno} {code.co_names} {plain}"


def function_state(function: Any) -> Iterator[tuple[str, Any]]:
  """What a function keeps between two calls: names and values."""
  names = function.__code__.co_freevars
  for name, cell in zip(names, function.__closure__ or ()):
    try:
      content = cell.cell_contents
    except ValueError:  # empty
      continue
    if name != "__class__":  # what super() needs
      yield name, content
  defaults = [*(function.__defaults__ or ())]
  defaults += (function.__kwdefaults__ or {}).values()
  for value in defaults:
    if type(value) not in PLAIN and not is_constant(value):
      yield "a default argument", value
  for name, value in vars(function).items():
    if not name.startswith("__"):
      yield name, value


def may_keep(kind: type) -> bool:
  """Whether a class itself may keep what changes how an environment goes on."""
  package = module_of(kind).split(".")[0]
  return package not in sys.stdlib_module_names and package not in _STATELESS


def shared_values(kind: type) -> Iterator[tuple[str, Any]]:
  """What a class and its bases keep that may change: names and values."""
  for base in filter(may_keep, kind.__mro__):
    for name, value in vars(base).items():
      if not name.startswith("__") and name != "_abc_impl":
        yield from _shared_value(f"{base.__qualname__}.{name}", value)


def _shared_value(name: str, value: Any) -> Iterator[tuple[str, Any]]:
  function = getattr(value, "__func__", getattr(value, "fget", value))
  if isinstance(function, types.FunctionType):
    for inner, kept in function_state(function):
      if isinstance(kept, types.FunctionType):  # what a decorator wraps
        yield from _shared_value(name, kept)
      elif not is_constant(kept):
        yield f"{name}.{inner}", kept
    return
  quiet = (
    gymnasium.Space,  # others seed it, too; a probe shows who draws from it
    property,
    functools.cached_property,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
  )
  if not isinstance(value, quiet) and not is_constant(value):
    yield name, value


class _Plain:
  """A class whose instances consist of their attributes and nothing else."""


def is_plain_class(kind: type) -> bool:
  """Whether instances consist of their attributes and nothing else."""
  package = module_of(kind).split(".")[0]
  return (
    package not in sys.stdlib_module_names  # processes, pipes, locks, files
    and kind.__basicsize__ == _Plain.__basicsize__  # otherwise more: C
    and kind.__dictoffset__ != 0
  )


def attributes(value: Any, path: str) -> dict[str, Any]:
  """The attributes that make up an object, if they do."""
  if isinstance(value, gymnasium.Space):  # it can draw; the rest is constant
    names = {"_np_random", "spaces"} & vars(value).keys()
    return {name: vars(value)[name] for name in sorted(names)}
  if not is_plain_class(type(value)):
    raise CannotCaptureError(f"{path} is a {class_name(type(value))}")
  found = dict(vars(value))
  if isinstance(value, vector.SyncVectorEnv):
    found.pop("env_fns", None)  # made its environments, and is done
  return found


def is_plain_key(key: Any) -> bool:
  """Whether a dict's key can be made anew from its value alone."""
  if type(key) is tuple:
    return all(map(is_plain_key, key))
  return type(key) in PLAIN or isinstance(key, np.generic)


def class_name(kind: type) -> str:
  """With its module."""
  return f"{module_of(kind)}.{kind.__qualname__}"


def module_of(kind: type) -> str:
  """Where a class is from; some that are written in C do not say (Box2D's)."""
  module = getattr(kind, "__module__", None)
  return module if isinstance(module, str) else "C"


def encode_array(array: np.ndarray, path: str) -> dict[str, Any]:
  """An array as JSON values; `axes` if it does not lie in memory in order."""
  if type(array) is not np.ndarray:
    raise CannotCaptureError(f"{path} is a {class_name(type(array))}")
  if array.dtype.hasobject or array.dtype.kind == "V":
    raise CannotCaptureError(f"{path} is an array of {array.dtype}")
  # Sums depend on the order in memory: from the largest stride to the least.
  axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
  inside = array.transpose(axes)
  if array.size > 1 and not inside.flags.c_contiguous:
    raise CannotCaptureError(f"{path} is a view of a part of an array")
  found = {"dtype": array.dtype.str, "shape": list(array.shape)}
  if array.size > 1 and not array.flags.c_contiguous:
    found["axes"] = axes
  else:
    inside = array
  data = base64.b64encode(np.ascontiguousarray(inside).tobytes()).decode()
  return {**found, "data": data}


def decode_array(state: dict[str, Any]) -> np.ndarray:
  """What `encode_array` was given."""
  flat = np.frombuffer(base64.b64decode(state["data"]), state["dtype"]).copy()
  if "axes" not in state:
    return flat.reshape(state["shape"])
  axes = state["axes"]
  inside = flat.reshape([state["shape"][axis] for axis in axes])
  return inside.transpose(np.argsort(axes))


def stream(generator: Any) -> Any:
  """What a generator draws from; two may draw from one."""
  if isinstance(generator, np.random.RandomState):
    return generator._bit_generator
  return getattr(generator, "bit_generator", generator)


def is_generator(value: Any) -> bool:
  """Whether a value draws random numbers, and its state can be read."""
  return isinstance(value, (*GENERATORS, random.Random)) and not isinstance(
    value, random.SystemRandom
  )


def generator_state(generator: Any) -> Any:
  """The state of a random generator, of plain values and arrays."""
  if isinstance(generator, random.Random):
    return generator.getstate()
  if isinstance(generator, np.random.RandomState):
    return generator.get_state(legacy=False)
  return generator.bit_generator.state


def set_generator_state(generator: Any, state: Any) -> None:
  """Puts a random generator where `generator_state` found one of its class."""
  if isinstance(generator, random.Random):
    generator.setstate(state)
  elif isinstance(generator, np.random.RandomState):
    generator.set_state(state)
  else:
    generator.bit_generator.state = state


def make_generator(name: str, state: Any) -> Any:
  """A generator of a class, with a state."""
  if name == "Random":
    made: Any = random.Random()
  elif name == "RandomState":
    made = np.random.RandomState()
  else:
    kinds = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
    kind = kinds[kinds.index(state["bit_generator"])]
    made = np.random.Generator(getattr(np.random, kind)())
  set_generator_state(made, state)
  return made
