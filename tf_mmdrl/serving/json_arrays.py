"""Nested lists of JSON as arrays, each number exactly what came."""

import base64
import binascii
import contextlib
import itertools
from typing import Any, List

import numpy as np
import orjson
import tensorflow as tf

from tf_mmdrl.core import errors

_SHOWN = 40  # characters of what a client sent, in a message about it


def tensor(name: str, value: Any, spec: tf.TensorSpec) -> np.ndarray:
  """An array of the spec's shape and type; [] or [B] for an unknown rank."""
  sizes = spec.shape.as_list() if spec.shape.rank is not None else None
  if sizes is None:
    sizes = [None] if isinstance(value, list) else []
  flat, shape = _flatten(name, value, sizes)
  if spec.dtype == tf.string:
    return np.array([_bytes(name, item) for item in flat], object)
  return _numbers(name, flat, spec.dtype.as_numpy_dtype).reshape(shape)


def _flatten(name: str, value: Any, sizes: List[Any]) -> Any:
  """The numbers in order, and the shape; every level must be regular."""
  flat, shape = [value], []
  for depth, size in enumerate(sizes):
    if set(map(type, flat)) != {list}:
      wrong = next(part for part in flat if type(part) is not list)
      raise _misshapen(name, sizes, depth, kind(wrong))
    lengths = set(map(len, flat))
    if len(lengths) > 1 or not lengths <= {size or len(flat[0])} - {0}:
      got = min(lengths - {size})
      raise _misshapen(name, sizes, depth, f"a list of {got}")
    shape.append(len(flat[0]))
    flat = list(itertools.chain.from_iterable(flat))
  return flat, shape


def _misshapen(name: str, sizes: List[Any], depth: int, got: str) -> Exception:
  wanted = sizes[depth] or "at least 1"
  shape = ", ".join("B" if size is None else str(size) for size in sizes)
  return errors.UserError(
    f"{name!r} must have the shape [{shape}]: wanted a list of {wanted} in"
    f" dimension {depth}, got {got}"
  )


def _numbers(name: str, flat: List[Any], dtype: Any) -> np.ndarray:
  """[n] numbers, each exactly what came or the nearest float."""
  if dtype is np.uint8:
    # Several times faster, and as strict; what it refuses is explained below.
    with contextlib.suppress(TypeError, ValueError):
      return np.frombuffer(bytes(flat), np.uint8)
  wanted = f"{name!r} must hold numbers of type {np.dtype(dtype).name}"
  kinds = set(map(type, flat))
  if not kinds <= {int, float, bool}:
    wrong = next(x for x in flat if type(x) not in (int, float, bool))
    raise errors.UserError(f"{wanted}, got {kind(wrong)}")
  try:
    given = np.array(flat, np.float64 if float in kinds else np.int64)
  except OverflowError:
    raise errors.UserError(f"{wanted}, got one beyond 64 bits") from None
  with np.errstate(over="ignore", invalid="ignore"):
    made = given.astype(dtype)
  floating = np.issubdtype(dtype, np.floating)
  good = np.isfinite(made) if floating else made == given
  if not good.all():
    raise errors.UserError(f"{wanted}, got {given[~good][0]}")
  return made


def _bytes(name: str, item: Any) -> bytes:
  if isinstance(item, str):
    return item.encode()
  try:
    if set(item) == {"b64"}:
      return base64.b64decode(item["b64"], validate=True)
  except (TypeError, ValueError, binascii.Error):
    pass  # the same message as for any other thing
  raise errors.UserError(
    f'{name!r} must hold strings or {{"b64": "..."}} with base64 in it'
  )


def kind(value: Any) -> str:
  """What a JSON value is, shortly."""
  if isinstance(value, dict):
    return "an object"
  if isinstance(value, list):
    return "a list" if value else "an empty list"
  return short(orjson.dumps(value).decode())


def short(text: str) -> str:
  """The beginning of what a client sent."""
  return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
