"""TensorFlow Serving's REST form of requests and answers, as pure functions.

https://www.tensorflow.org/tfx/serving/api_rest
"""

import base64
import binascii
import contextlib
import itertools
from typing import Any, Dict, List, Mapping, NamedTuple

import numpy as np
import orjson
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.serving.models import Arrays, Model, Signature

DEFAULT_SIGNATURE = "serving_default"
_KEYS = {"signature_name", "instances", "inputs"}


class Request(NamedTuple):
  """What a body asks for.

  Attributes:
    signature: the name of the function.
    inputs: arrays [B, ...] by name.
    size: B.
    by_row: whether the answer is one entry for each instance.
  """

  signature: str
  inputs: Arrays
  size: int
  by_row: bool


def decode(body: bytes, signatures: Mapping[str, Signature]) -> Request:
  """Reads a predict request; `UserError` says what is wrong with it."""
  content = _parse(body)
  if not isinstance(content, dict):
    raise errors.UserError(
      f"the body must be a JSON object, got {_kind(content)}"
    )
  for key in content:
    if key not in _KEYS:
      raise errors.unknown_name("key", key, _KEYS)
  name = content.get("signature_name", DEFAULT_SIGNATURE)
  if not isinstance(name, str) or name not in signatures:
    raise errors.unknown_name("signature", str(name), signatures)
  if ("instances" in content) == ("inputs" in content):
    raise errors.UserError(
      'the body must have either "instances" (a list) or "inputs"'
    )
  specs = signatures[name].inputs
  by_row = "instances" in content
  if by_row:
    columns = _columns(content["instances"], specs)
  else:
    columns = _named(content["inputs"], specs, '"inputs"')
  inputs = {
    key: _tensor(key, value, specs[key]) for key, value in columns.items()
  }
  size = _size(inputs)
  batched = {
    key: array if array.ndim else np.repeat(array, size)
    for key, array in inputs.items()
  }
  return Request(name, batched, size, by_row)


def encode(outputs: Arrays, *, by_row: bool) -> bytes:
  """The answer: `predictions` row by row, or `outputs` by name."""
  key = "predictions" if by_row else "outputs"
  content: Any = {n: np.ascontiguousarray(a) for n, a in outputs.items()}
  if len(content) == 1:  # then its name is left out
    (content,) = content.values()
  elif by_row:
    lists = zip(*(array.tolist() for array in content.values()))
    content = [dict(zip(content, row)) for row in lists]
  return orjson.dumps({key: content}, option=orjson.OPT_SERIALIZE_NUMPY)


def metadata(name: str, model: Model) -> Dict[str, Any]:
  """A model's signatures, as TensorFlow Serving shows them, and its origin."""
  signatures = {
    key: {
      "inputs": {n: _describe(s) for n, s in signature.inputs.items()},
      "outputs": {n: _describe(s) for n, s in signature.outputs.items()},
      "method_name": "tensorflow/serving/predict",
    }
    for key, signature in model.signatures.items()
  }
  version = str(model.number)
  return {
    "model_spec": {"name": name, "signature_name": "", "version": version},
    "metadata": {
      "signature_def": {"signature_def": signatures},
      "policy": model.metadata,
    },
  }


def status(number: int, failure: str = "") -> Dict[str, Any]:
  """Whether a version answers, as TensorFlow Serving says it."""
  return {
    "version": str(number),
    "state": "END" if failure else "AVAILABLE",
    "status": {
      "error_code": "DATA_LOSS" if failure else "OK",
      "error_message": failure,
    },
  }


def _describe(spec: tf.TensorSpec) -> Dict[str, Any]:
  known = spec.shape.rank is not None
  sizes = [-1 if d is None else d for d in spec.shape] if known else []
  return {
    "dtype": f"DT_{tf.dtypes.as_dtype(spec.dtype).name.upper()}",
    "tensor_shape": {
      "dim": [{"size": str(size), "name": ""} for size in sizes],
      "unknown_rank": not known,
    },
    "name": spec.name,
  }


def _parse(body: bytes) -> Any:
  try:
    return orjson.loads(body)
  except orjson.JSONDecodeError as error:
    hint = "; numbers must be finite" if b"NaN" in body else ""
    raise errors.UserError(f"the body is not JSON: {error}{hint}") from None


def _columns(
  instances: Any, specs: Mapping[str, tf.TensorSpec]
) -> Dict[str, List[Any]]:
  """Rows as columns."""
  if not isinstance(instances, list) or not instances:
    raise errors.UserError(
      f'"instances" must be a list of at least one, got {_kind(instances)}'
    )
  rows = [
    _named(row, specs, f'"instances"[{index}]')
    for index, row in enumerate(instances)
  ]
  return {name: [row[name] for row in rows] for name in specs}


def _named(
  value: Any, specs: Mapping[str, tf.TensorSpec], place: str
) -> Dict[str, Any]:
  """Values by name; the name may be left out if there is only one."""
  if not isinstance(value, dict) or set(value) == {"b64"}:
    if len(specs) == 1:
      return dict.fromkeys(specs, value)
    raise errors.UserError(
      f"{place} must be an object with {_list(specs)}, got {_kind(value)}"
    )
  for name in value:
    if name not in specs:
      raise errors.unknown_name(f"input in {place}", name, specs)
  missing = [name for name in specs if name not in value]
  if missing:
    raise errors.UserError(f"{place} lacks {_list(missing)}")
  return value


def _tensor(name: str, value: Any, spec: tf.TensorSpec) -> np.ndarray:
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
      raise _misshapen(name, sizes, depth, _kind(wrong))
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
    raise errors.UserError(f"{wanted}, got {_kind(wrong)}")
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


def _size(inputs: Arrays) -> int:
  """The number of rows, which all arrays that have rows must share."""
  sizes = {name: len(a) for name, a in inputs.items() if a.ndim}
  if len(set(sizes.values())) != 1:
    raise errors.UserError(
      f"all inputs must have the same number of rows, got {sizes}"
    )
  return next(iter(sizes.values()))


def _list(names: Any) -> str:
  return ", ".join(repr(name) for name in names)


def _kind(value: Any) -> str:
  """What a JSON value is, shortly."""
  if isinstance(value, dict):
    return "an object"
  if isinstance(value, list):
    return "a list" if value else "an empty list"
  text = orjson.dumps(value).decode()
  return text if len(text) <= 40 else f"{text[:40]}..."
