"""A policy as a SavedModel that plain TensorFlow loads, and back."""

import json
import pathlib
import tempfile
from typing import (
  TYPE_CHECKING,
  Any,
  Callable,
  Dict,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
)

import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.serving import directories, signatures

if TYPE_CHECKING:
  from tf_agents.networks import network

_METADATA = "metadata.json"
# Where TensorFlow Serving wants files that it should leave alone.
_EXTRAS = "assets.extra"


def publish(
  net: "network.Network",
  directory: pathlib.Path,
  number: int,
  *,
  metadata: Optional[Mapping[str, Any]] = None,
  extras: Sequence[Callable[[pathlib.Path], None]] = (),
) -> pathlib.Path:
  """Exports a policy as `directory/number`, whole or not at all.

  The model needs nothing but TensorFlow to load; `signatures.build` says what
  it can be asked.

  Args:
    net: observation -> particles.
    directory: of the versions, as TensorFlow Serving expects it.
    number: of this version.
    metadata: JSON values, kept as `assets/metadata.json`.
    extras: each writes something into a directory, `assets.extra`.

  Returns:
    The version's directory.

  Raises:
    OSError: if it cannot be written; then nothing has changed.
  """
  module, functions = signatures.build(net)
  try:
    with directories.publishing(directory, number) as path:
      with tempfile.TemporaryDirectory() as beside:
        file = pathlib.Path(beside, _METADATA)
        file.write_text(json.dumps(metadata or {}, indent=2) + "\n")
        module.metadata = tf.saved_model.Asset(str(file))
        tf.saved_model.save(module, str(path), signatures=functions)
      for write in extras:
        (path / _EXTRAS).mkdir(exist_ok=True)
        write(path / _EXTRAS)
  except tf.errors.OpError as error:  # TensorFlow's own word for a full disk
    raise OSError(error.message.splitlines()[0]) from error
  return directory / str(number)


def metadata(directory: pathlib.Path, number: int) -> Dict[str, Any]:
  """What was written beside a version; empty for a model of others."""
  path = directory / str(number) / "assets" / _METADATA
  try:
    return dict(json.loads(path.read_text()))
  except FileNotFoundError:
    return {}
  except (OSError, ValueError, TypeError) as error:
    raise errors.UserError(f"{str(path)!r} cannot be read: {error}") from None


class Policy(NamedTuple):
  """A loaded version.

  Attributes:
    number: of the version.
    network: observations [B, ...] -> distributions [B, A, N].
  """

  number: int
  network: "network.Network"


def load(
  net: "network.Network",
  directory: pathlib.Path,
  number: Optional[int] = None,
) -> Policy:
  """Reads the weights of a version into a network; runs nothing of the file.

  Args:
    net: made as the exported one was.
    directory: of the versions.
    number: of the version; the newest if None.

  Returns:
    The policy.
  """
  number = directories.find(directory, number)
  path = directory / str(number) / "variables" / "variables"
  reader = tf.train.load_checkpoint(str(path))
  for index, variable in enumerate(net.variables):
    key = f"model_variables/{index}/.ATTRIBUTES/VARIABLE_VALUE"
    if variable is getattr(net, "unit", None) and not reader.has_tensor(key):
      variable.assign(1.0)  # exported when networks had no unit
      continue
    variable.assign(reader.get_tensor(key))
  return Policy(number, net)
