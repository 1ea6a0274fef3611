"""A SavedModel from a directory of versions, to be run."""

import contextlib
import pathlib
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.serving import directories, saved_model

Arrays = Dict[str, np.ndarray]


class Signature(NamedTuple):
  """A function of a model.

  Attributes:
    inputs: its arguments' specs, by name.
    outputs: its results' specs, by name.
    call: runs it.
  """

  inputs: Dict[str, tf.TensorSpec]
  outputs: Dict[str, tf.TensorSpec]
  call: Callable[[Mapping[str, np.ndarray]], Arrays]


class Model(NamedTuple):
  """A version that was loaded.

  Attributes:
    number: of the version.
    signatures: what it can be asked, by name.
    metadata: what was written beside it.
    loaded: TensorFlow's object, which owns the variables.
  """

  number: int
  signatures: Dict[str, Signature]
  metadata: Dict[str, Any]
  loaded: Any


def open_model(directory: pathlib.Path, number: Optional[int] = None) -> Model:
  """Loads a version with TensorFlow alone.

  A SavedModel is a program: this runs it. So only what lies in the directory
  is loaded, never what a link in it points to.

  Args:
    directory: of the versions.
    number: of the version; the newest if None.

  Returns:
    The model, each of its signatures run once.
  """
  number = directories.find(directory, number)
  path = (directory / str(number)).resolve()
  if path.parent != directory.resolve():
    raise errors.UserError(
      f"version {number} is a link out of {str(directory)!r}; copy it there"
    )
  try:
    loaded = tf.saved_model.load(str(path))
  except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
    raise errors.UserError(
      f"version {number} in {str(directory)!r} is no whole SavedModel:"
      f" {str(error).splitlines()[0]}"
    ) from None
  model = Model(
    number,
    {name: _signature(f) for name, f in loaded.signatures.items()},
    saved_model.metadata(directory, number),
    loaded,
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

  return Signature(dict(inputs), dict(function.structured_outputs), call)


def _warm_up(signature: Signature) -> None:
  """Has TensorFlow optimise the graph now, not at the first request."""
  # The example need not be an input that it takes.
  with contextlib.suppress(tf.errors.OpError):
    signature.call({n: _example(spec) for n, spec in signature.inputs.items()})


def _example(spec: tf.TensorSpec) -> np.ndarray:
  """Ones of a batch of 1; empty strings."""
  shape = [] if spec.shape.rank is None else spec.shape.as_list()
  one = b"" if spec.dtype == tf.string else 1
  sizes = [size or 1 for size in shape]
  return np.full(sizes, one, spec.dtype.as_numpy_dtype)
