"""Gymnasium spaces as TF-Agents array specs, and values checked against them.

Box, Discrete, MultiDiscrete and MultiBinary become one `BoundedArraySpec`;
Dict and Tuple become dicts and tuples of specs.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import errors


def spec_from_space(space: spaces.Space, name: str) -> types.NestedArraySpec:
  """The array spec (or dict or tuple of specs) of a Gymnasium space.

  Infinite bounds become the largest finite ones of the dtype, as everywhere
  in TF-Agents.

  Args:
    space: the Gymnasium space.
    name: the name of the spec; nested specs are called `name/key`.

  Returns:
    The spec, with the space's own shape, dtype (int8 for bool) and inclusive
    bounds.
  """
  if isinstance(space, spaces.Dict):
    return {
      key: spec_from_space(part, f"{name}/{key}")
      for key, part in space.spaces.items()
    }
  if isinstance(space, spaces.Tuple):
    return tuple(
      spec_from_space(part, f"{name}/{index}")
      for index, part in enumerate(space.spaces)
    )
  minimum, maximum = _bounds(space)
  # TensorFlow has no bounds for bool; int8 is what MultiBinary uses too.
  dtype = np.int8 if space.dtype == bool else space.dtype
  return array_spec.BoundedArraySpec(space.shape, dtype, minimum, maximum, name)


def _bounds(space: spaces.Space) -> tuple[Any, Any]:
  if isinstance(space, spaces.Box):
    return _smallest(space.low, space.high)
  if isinstance(space, spaces.Discrete):
    return space.start, np.add(space.start, space.n) - 1
  if isinstance(space, spaces.MultiDiscrete):
    return _smallest(space.start, space.start + space.nvec - 1)
  if isinstance(space, spaces.MultiBinary):
    return 0, 1
  raise errors.UserError(
    f"{type(space).__name__} spaces have no fixed-size array, so TF-Agents"
    " cannot describe them; wrap the environment so that it uses Box,"
    " Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
  )


def _smallest(low: np.ndarray, high: np.ndarray) -> tuple[Any, Any]:
  """One number for each bound where all elements share it."""
  if low.size and np.all(low == low.flat[0]) and np.all(high == high.flat[0]):
    return low.flat[0], high.flat[0]
  return low, high


def to_arrays(value: Any, spec: types.NestedArraySpec) -> types.NestedArray:
  """Fresh arrays of the spec's dtypes, in the spec's structure.

  They are copies: an environment may return the same buffer at every step.
  """
  if isinstance(spec, dict):
    return {key: to_arrays(value[key], part) for key, part in spec.items()}
  if isinstance(spec, tuple):
    return tuple(to_arrays(item, part) for item, part in zip(value, spec))
  return np.array(value, dtype=spec.dtype)


def step_type(first: np.ndarray, last: np.ndarray) -> np.ndarray:
  """[] or [B] int32: FIRST, LAST, or MID where it is neither."""
  later = np.where(last, ts.StepType.LAST, ts.StepType.MID)
  return np.where(first, ts.StepType.FIRST, later)


def to_gymnasium(
  action: Any,
  space: Any,
  spec: types.NestedArraySpec,
  batch: tuple[int, ...] = (),
) -> Any:
  """An action in the types that Gymnasium's spaces have; raises unless it fits.

  Integers of any width are accepted for integers and numbers for floats: what
  counts is that no value changes in the conversion but for rounding.

  Args:
    action: `batch + spec.shape` values, in the structure of the spec.
    space: the action space, one of Gymnasium's.
    spec: the action spec, `spec_from_space` of it.
    batch: `(B,)` for a batched environment.

  Returns:
    The action for the environment's `step`.
  """
  if isinstance(spec, dict):
    if not isinstance(action, dict) or set(action) != set(spec):
      raise errors.UserError(
        f"an action must be a dict with the keys {sorted(spec)}, got {action!r}"
      )
    return {
      key: to_gymnasium(action[key], space.spaces[key], part, batch)
      for key, part in spec.items()
    }
  if isinstance(spec, tuple):
    if not isinstance(action, (tuple, list)) or len(action) != len(spec):
      raise errors.UserError(
        f"an action must be a tuple of {len(spec)} parts, got {action!r}"
      )
    return tuple(
      to_gymnasium(item, inner, part, batch)
      for item, inner, part in zip(action, space.spaces, spec)
    )
  checked = check_array(np.asarray(action), spec, batch)
  if isinstance(space, spaces.Discrete) and not checked.shape:
    return int(checked)  # some environments use it as a dict key
  return checked.astype(space.dtype, copy=False)  # bool is int8 in the spec


def check_array(
  action: np.ndarray, spec: array_spec.BoundedArraySpec, batch: tuple[int, ...]
) -> np.ndarray:
  """Raises unless an array fits its spec; returns it in the spec's dtype.

  Three comparisons and no Python loop.
  """
  shape = batch + spec.shape
  if action.shape != shape:
    raise errors.UserError(
      f"{spec.name} must have the shape {shape}, got {action.shape}:"
      f" {action!r}; see action_spec()"
    )
  if action.dtype != spec.dtype and not _fits(action.dtype, spec.dtype):
    raise errors.UserError(
      f"{spec.name} must be {spec.dtype}, got {action.dtype}: {action!r};"
      " convert it first"
    )
  # `>=` and `<=` are false for NaN, so that NaN is refused too.
  inside = (action >= spec.minimum) & (action <= spec.maximum)
  if not inside.all():
    raise errors.UserError(
      f"{spec.name} must lie within [{spec.minimum}, {spec.maximum}], got"
      f" {action!r}; see action_spec()"
    )
  return action.astype(spec.dtype, copy=False)


def _fits(came: np.dtype, wanted: np.dtype) -> bool:
  if wanted.kind in "iu":
    return came.kind in "iu"
  return np.can_cast(came, wanted, "same_kind")
