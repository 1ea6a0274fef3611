"""A SavedModel from a directory of versions, to be run."""

import contextlib
import pathlib
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tf_mmdrl.serving import directories, manifests, saved_model

Arrays = Dict[str, np.ndarray]

# Bytes of a number's type -> characters that JSON needs for it at most, with
# the comma. float16 is written with the digits of float32, of which the longest
# are like -1000000000000.0 and -0.0000063184107.
_DIGITS = {1: 6, 2: 17, 4: 17, 8: 26}


class Signature(NamedTuple):
  """A function of a model.

  Attributes:
    inputs: its arguments' specs, by name.
    outputs: its results' specs, by name.
    call: runs it.
    row_bytes: the most that one row of an answer takes as JSON; dimensions
      that the model leaves open count as 1.
  """

  inputs: Dict[str, tf.TensorSpec]
  outputs: Dict[str, tf.TensorSpec]
  call: Callable[[Mapping[str, np.ndarray]], Arrays]
  row_bytes: int


class Model(NamedTuple):
  """A version that was loaded.

  Attributes:
    number: the number of the version.
    signatures: what it can be asked, by name.
    metadata: what was written beside it.
    loaded: TensorFlow's object, which owns the variables.
    checked: whether its files were compared with a manifest.
  """

  number: int
  signatures: Dict[str, Signature]
  metadata: Dict[str, Any]
  loaded: Any
  checked: bool


def open_model(directory: pathlib.Path, number: Optional[int] = None) -> Model:
  """Loads a version with TensorFlow alone.

  A SavedModel is a program: this runs it. So its files are compared with its
  manifest first, and none may be a link.

  Args:
    directory: the directory of the versions.
    number: the number of the version; the newest if None.

  Returns:
    The model, each of its signatures run once.

  Raises:
    UserError: whatever is wrong with the version.
  """
  number = directories.find(directory, number)
  with saved_model.opening(directory, number) as checked:
    path = str(directory / str(number))
    with contextlib.suppress(FileNotFoundError):  # some have none
      # TensorFlow would show a damaged one as a traceback, and go on.
      tf.saved_model.experimental.read_fingerprint(path)
    loaded = tf.saved_model.load(path)
    model = Model(
      number,
      {name: _signature(f) for name, f in loaded.signatures.items()},
      manifests.metadata(directory, number),
      loaded,
      checked,
    )
    for signature in model.signatures.values():
      _warm_up(signature)
  return model


def _signature(function: Any) -> Signature:
  inputs = function.structured_input_signature[1]

  def call(arrays: Mapping[str, np.ndarray]) -> Arrays:
    tensors = {
      name: tf.constant(array, inputs[name].dtype)
      for name, array in arrays.items()
    }
    return {name: t.numpy() for name, t in function(**tensors).items()}

  outputs = dict(function.structured_outputs)
  return Signature(dict(inputs), outputs, call, row_bytes(outputs))


def row_bytes(outputs: Mapping[str, tf.TensorSpec]) -> int:
  """The most characters of JSON for one row of outputs."""
  return 2 + sum(map(_text_bytes, outputs, outputs.values()))


def _warm_up(signature: Signature) -> None:
  """Has TensorFlow optimise the graph now, not at the first request."""
  # The example need not be an input that it takes.
  with contextlib.suppress(tf.errors.InvalidArgumentError):
    signature.call({n: _example(spec) for n, spec in signature.inputs.items()})


def _example(spec: tf.TensorSpec) -> np.ndarray:
  """Ones of a batch of 1; empty strings."""
  shape = [] if spec.shape.rank is None else spec.shape.as_list()
  one = b"" if spec.dtype == tf.string else 1
  sizes = [size or 1 for size in shape]
  return np.full(sizes, one, spec.dtype.as_numpy_dtype)


def _text_bytes(name: str, spec: tf.TensorSpec) -> int:
  """The most characters of one row of an output, with its name."""
  sizes = [] if spec.shape.rank is None else spec.shape.as_list()
  lists, numbers = 0, 1
  for size in sizes[1:]:
    lists += numbers  # each with brackets and a comma
    numbers *= size or 1
  digits = _DIGITS.get(spec.dtype.size, _DIGITS[8])
  return len(name) + 4 + 3 * lists + digits * numbers
