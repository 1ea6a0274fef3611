"""TensorFlow Serving's REST form of requests and answers, as pure functions.

https://www.tensorflow.org/tfx/serving/api_rest
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Union

import numpy as np
import orjson
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.serving.json_arrays import kind, short, tensor
from tf_mmdrl.serving.limits import Refusal
from tf_mmdrl.serving.models import Arrays, Model, Signature

DEFAULT_SIGNATURE = "serving_default"
_KEYS = {"signature_name", "instances", "inputs"}
# Lists and objects that a body may have: enough for 64 images of Atari as
# lists. Python takes 40 times as much memory for more of them as the text does.
_CONTAINERS = 2**19


class Request(NamedTuple):
  """What a body asks for.

  Attributes:
    signature: the name of the function.
    inputs: arrays [B, ...] by name.
    size: B.
    by_row: whether the answer is one entry for each instance.
    answer_bytes: what the answer takes at most.
  """

  signature: str
  inputs: Arrays
  size: int
  by_row: bool
  answer_bytes: int


def decode(
  body: Union[bytes, bytearray],
  signatures: Mapping[str, Signature],
  max_answer: int,
) -> Request:
  """Reads a predict request.

  Args:
    body: JSON.
    signatures: the signatures of the model, by name.
    max_answer: bytes of an answer.

  Returns:
    The request.

  Raises:
    UserError: says what is wrong with the body.
    Refusal: if the answer would be too large; before the rows are read.
  """
  content = _parse(body)
  if not isinstance(content, dict):
    raise errors.UserError(
      f"the body must be a JSON object, got {kind(content)}"
    )
  for key in content:
    if key not in _KEYS:
      raise errors.unknown_name("key", short(key), _KEYS)
  name = content.get("signature_name", DEFAULT_SIGNATURE)
  if not isinstance(name, str) or name not in signatures:
    raise errors.unknown_name("signature", short(str(name)), signatures)
  if ("instances" in content) == ("inputs" in content):
    raise errors.UserError(
      'the body must have either "instances" (a list) or "inputs"'
    )
  specs = signatures[name].inputs
  by_row = "instances" in content
  answer_bytes = _bounded(
    _rows(content["instances" if by_row else "inputs"], by_row),
    signatures[name].row_bytes,
    max_answer,
  )
  if by_row:
    columns = _columns(content["instances"], specs)
  else:
    columns = _named(content["inputs"], specs, '"inputs"')
  inputs = {
    key: tensor(key, value, specs[key]) for key, value in columns.items()
  }
  size = _size(inputs)
  batched = {
    key: array if array.ndim else np.repeat(array, size)
    for key, array in inputs.items()
  }
  return Request(name, batched, size, by_row, answer_bytes)


def encode(outputs: Arrays, by_row: bool, max_answer: int) -> bytes:
  """The answer: `predictions` row by row, or `outputs` by name.

  Args:
    outputs: arrays [B, ...] by name.
    by_row: whether the rows stand alone.
    max_answer: bytes; a model that leaves its outputs' shape open may pass it.

  Returns:
    JSON.

  Raises:
    UserError: if a number is not finite, for which JSON has no word.
    Refusal: if it is too large.
  """
  least = sum(2 * array.size for array in outputs.values())
  _bounded(1, least, max_answer)
  key = "predictions" if by_row else "outputs"
  content: Any = {n: np.ascontiguousarray(a) for n, a in outputs.items()}
  if len(content) == 1:  # then its name is left out
    (content,) = content.values()
  elif by_row:
    # NumPy's arrays and numbers as they are: Python's are larger, and float32
    # would get the digits of float64.
    content = [dict(zip(content, row)) for row in zip(*content.values())]
  text = orjson.dumps({key: content}, option=orjson.OPT_SERIALIZE_NUMPY)
  if b"null" in text:  # what orjson writes for them; far faster than to look
    _require_finite(outputs)
  return text


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


def status(number: int, *, served: bool, failure: str = "") -> Dict[str, Any]:
  """Whether a version answers, as TensorFlow Serving says it.

  Args:
    number: the number of the version.
    served: whether it answers; one that was damaged since it was loaded does.
    failure: why it cannot be loaded as it is now.

  Returns:
    JSON values.
  """
  return {
    "version": str(number),
    "state": "AVAILABLE" if served else "END",
    "status": {
      "error_code": "DATA_LOSS" if failure else "OK",
      "error_message": failure,
    },
  }


def _require_finite(outputs: Arrays) -> None:
  for name, array in outputs.items():
    if array.dtype.kind == "f" and not np.isfinite(array).all():
      (row, *_), *_ = np.argwhere(~np.isfinite(array))
      raise errors.UserError(
        f"the model's {name!r} of row {row} is not finite; the observation may"
        " be out of its range, or hold NaN"
      )


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


def _parse(body: Union[bytes, bytearray]) -> Any:
  containers = body.count(b"[") + body.count(b"{")
  if containers > _CONTAINERS:
    raise Refusal(
      413,
      f"a body may have {_CONTAINERS} lists and objects, got {containers};"
      " send fewer rows, or base64",
    )
  try:
    return orjson.loads(body)
  except orjson.JSONDecodeError as error:
    hint = "; numbers must be finite" if b"NaN" in body else ""
    raise errors.UserError(f"the body is not JSON: {error}{hint}") from None


def _rows(value: Any, by_row: bool) -> int:
  """How many rows there seem to be; what is no list is refused later."""
  columns = [value]
  if isinstance(value, dict) and not by_row:
    columns = list(value.values())
  return max((len(c) for c in columns if isinstance(c, list)), default=1)


def _bounded(rows: int, row_bytes: int, max_answer: int) -> int:
  """The bytes of an answer, if they are not too many."""
  size = rows * row_bytes
  if size > max_answer:
    raise Refusal(
      413,
      f"an answer may have {max_answer} bytes: {rows} rows of up to"
      f" {row_bytes} bytes would have {size}; send at most"
      f" {max_answer // row_bytes} rows",
    )
  return size


def _columns(
  instances: Any, specs: Mapping[str, tf.TensorSpec]
) -> Dict[str, List[Any]]:
  """Rows as columns."""
  if not isinstance(instances, list) or not instances:
    raise errors.UserError(
      f'"instances" must be a list of at least one, got {kind(instances)}'
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
      f"{place} must be an object with {_list(specs)}, got {kind(value)}"
    )
  for name in value:
    if name not in specs:
      raise errors.unknown_name(f"input in {place}", short(name), specs)
  missing = [name for name in specs if name not in value]
  if missing:
    raise errors.UserError(f"{place} lacks {_list(missing)}")
  return value


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
