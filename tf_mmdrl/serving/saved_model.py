"""A policy as a SavedModel that plain TensorFlow loads, and back."""

import contextlib
import json
import pathlib
import tempfile
from typing import (
  TYPE_CHECKING,
  Any,
  Callable,
  Iterator,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
)

import tensorflow as tf

from tf_mmdrl.core import errors, full_disk
from tf_mmdrl.serving import directories, manifests, signatures

if TYPE_CHECKING:
  from tf_agents.networks import network


def publish(
  net: "network.Network",
  directory: pathlib.Path,
  number: int,
  *,
  reading: signatures.Reading = signatures.EXPECTED,
  metadata: Optional[Mapping[str, Any]] = None,
  extras: Sequence[Callable[[pathlib.Path], None]] = (),
) -> pathlib.Path:
  """Exports a policy as `directory/number`, whole or not at all.

  The model needs nothing but TensorFlow to load; `signatures.build` says what
  it can be asked.

  Args:
    net: observation -> particles.
    directory: the directory of the versions, as TensorFlow Serving expects it.
    number: the number of this version.
    reading: what actions maximise; the expected return by default.
    metadata: JSON values, kept as `assets/metadata.json` with the format's
      number.
    extras: each writes something into a directory, `assets.extra`.

  Returns:
    The version's directory.

  Raises:
    OSError: if it cannot be written; then nothing has changed.
  """
  module, functions = signatures.build(net, reading)
  try:
    with directories.publishing(directory, number) as path:
      with tempfile.TemporaryDirectory() as beside:
        file = pathlib.Path(beside, manifests.METADATA)
        content = {"format": manifests.FORMAT, **(metadata or {})}
        file.write_text(json.dumps(content, indent=2) + "\n")
        module.metadata = tf.saved_model.Asset(str(file))
        tf.saved_model.save(module, str(path), signatures=functions)
      for write in extras:
        (path / manifests.EXTRAS).mkdir(exist_ok=True)
        write(path / manifests.EXTRAS)
      manifests.write(path)
  except tf.errors.OpError as error:  # TensorFlow's own word for a full disk
    raise OSError(full_disk.reason(error)) from error
  return directory / str(number)


@contextlib.contextmanager
def opening(directory: pathlib.Path, number: int) -> Iterator[bool]:
  """Makes sure that a version is what was published, before it is loaded.

  Whatever fails in the files then, also inside of the `with`, becomes one line
  that names the version: TensorFlow raises nearly anything for damaged files,
  IndexError, RuntimeError and TypeError among others.

  Args:
    directory: the directory of the versions.
    number: the number of the version.

  Yields:
    Whether it could be checked: earlier exports and the models of others have
    no manifest.

  Raises:
    DamagedVersionError: if it is not what was published, or holds links.
  """
  path = directory / str(number)
  try:
    if path.is_symlink():
      raise errors.UserError("it is a link; copy what it leads to")
    checked = manifests.verify(path)
    if (
      not checked and manifests.metadata(directory, number).get("format", 1) > 1
    ):
      raise errors.UserError(f"{manifests.MANIFEST!r} is missing")
    yield checked
  except Exception as error:
    raise _unusable(directory, number, error) from error


def _unusable(
  directory: pathlib.Path, number: int, error: Exception
) -> manifests.DamagedVersionError:
  reason = str(error)
  if not isinstance(error, (errors.UserError, OSError)):
    reason = f"{type(error).__name__}: {reason}"
  advice = "export it again with mmdrl export"
  others = [str(n) for n in directories.versions(directory) if n != number]
  if others:
    advice += f"; the other versions are {', '.join(others[-3:])}"
  return manifests.DamagedVersionError(
    f"{(reason.splitlines() or [type(error).__name__])[0]}; {advice}",
    where=f"version {number} in {str(directory)!r} cannot be used: ",
  )


def unchecked(number: int) -> str:
  """What to tell of a version without a manifest."""
  return (
    f"version {number} has no manifest, so whether its files are whole cannot"
    " be checked; mmdrl export writes one"
  )


class Policy(NamedTuple):
  """A loaded version.

  Attributes:
    number: the number of the version.
    network: observations [B, ...] -> distributions [B, A, N].
    checked: whether its files were compared with a manifest.
  """

  number: int
  network: "network.Network"
  checked: bool


def load(
  net: "network.Network",
  directory: pathlib.Path,
  number: Optional[int] = None,
) -> Policy:
  """Reads the weights of a version into a network; runs nothing of the file.

  Args:
    net: made as the exported one was.
    directory: the directory of the versions.
    number: the number of the version; the newest if None.

  Returns:
    The policy.
  """
  number = directories.find(directory, number)
  with opening(directory, number) as checked:
    path = directory / str(number) / "variables" / "variables"
    reader = tf.train.load_checkpoint(str(path))
    for index, variable in enumerate(net.variables):
      key = f"model_variables/{index}/.ATTRIBUTES/VARIABLE_VALUE"
      if variable is getattr(net, "unit", None) and not reader.has_tensor(key):
        variable.assign(1.0)  # exported when networks had no unit
        continue
      variable.assign(reader.get_tensor(key))
  return Policy(number, net, checked)
