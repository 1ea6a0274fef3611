"""Numbered SavedModels of a policy; each appears whole or not at all."""

import os
import pathlib
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution

_TEMPORARY = ".tmp-"


def publish(
  net: network.Network, directory: pathlib.Path, number: int
) -> pathlib.Path:
  """Exports a policy as `directory/number`.

  The model needs nothing but TensorFlow to load. Its signature
  `serving_default` maps `observation` [B, ...] to `action` [B] and `q_values`
  [B, A]; `particles` maps it to `particles` [B, A, N].

  Args:
    net: observation -> particles.
    directory: of the versions, as TensorFlow Serving expects it.
    number: of this version.

  Returns:
    The version's directory.
  """
  directory.mkdir(parents=True, exist_ok=True)
  for orphan in directory.glob(f"{_TEMPORARY}*"):
    shutil.rmtree(orphan)
  final = directory / str(number)
  temporary = directory / f"{_TEMPORARY}{number}"
  module, signatures = _model(net)
  tf.saved_model.save(module, str(temporary), signatures=signatures)
  if final.exists():
    shutil.rmtree(final)
  os.rename(temporary, final)
  return final


class Policy(NamedTuple):
  """A loaded version.

  Attributes:
    number: of the version.
    act: observations [B, ...] -> greedy actions [B].
    particles: observations [B, ...] -> [B, A, N].
  """

  number: int
  act: Callable[[np.ndarray], np.ndarray]
  particles: Callable[[np.ndarray], np.ndarray]


def load(
  net: network.Network, directory: pathlib.Path, number: Optional[int] = None
) -> Policy:
  """Reads the weights of a version into a network; runs nothing of the file.

  Args:
    net: made as the exported one was.
    directory: of the versions.
    number: of the version; the newest if None.

  Returns:
    The policy.
  """
  there = versions(directory)
  if not there:
    raise errors.UserError(
      f"there is no exported policy in {str(directory)!r} yet; run mmdrl export"
    )
  number = there[-1] if number is None else number
  if number not in there:
    names = ", ".join(map(str, there))
    raise errors.UserError(f"there is no version {number}; there are {names}")
  path = directory / str(number) / "variables" / "variables"
  reader = tf.train.load_checkpoint(str(path))
  for index, variable in enumerate(net.variables):
    variable.assign(
      reader.get_tensor(f"model_variables/{index}/.ATTRIBUTES/VARIABLE_VALUE")
    )
  _, functions = _model(net)

  def call(signature, output):
    function = functions[signature]
    return lambda observation: function(tf.constant(observation))[
      output
    ].numpy()

  return Policy(
    number,
    act=call("serving_default", "action"),
    particles=call("particles", "particles"),
  )


def versions(directory: pathlib.Path) -> List[int]:
  """The numbers there are, in order."""
  if not directory.is_dir():
    return []
  names = (path.name for path in directory.iterdir())
  return sorted(int(name) for name in names if name.isdigit())


def _model(net: network.Network) -> Tuple[tf.Module, Dict[str, Any]]:
  """A plain tf.Module: the variables and two functions, no Keras object."""
  spec = net.input_tensor_spec
  observation = tf.TensorSpec([None, *spec.shape], spec.dtype, "observation")

  @tf.function(input_signature=[observation], autograph=False)
  def particles(observation):
    values, _ = net(observation)
    return {"particles": values}

  @tf.function(input_signature=[observation], autograph=False)
  def act(observation):
    values, _ = net(observation)
    expected = ReturnDistribution.of(values).mean()
    return {"action": tf.argmax(expected, axis=-1), "q_values": expected}

  module = tf.Module()
  module.model_variables = list(net.variables)
  return module, {"serving_default": act, "particles": particles}
