"""Data sets in Minari's format, read and written with h5py alone.

A data set is `data/metadata.json` and `data/main_data.hdf5`. Minari itself
would make the environment of some data sets, and can download them; here a data
set is data: nothing of it is imported, unpickled or fetched.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np

from tf_mmdrl.core import errors, full_disk, optional
from tf_mmdrl.offline import dataset, minari_spaces
from tf_mmdrl.offline.dataset import DataSet, Description, Episode

METADATA, MAIN = "metadata.json", "main_data.hdf5"
_EPISODE = re.compile("episode_[0-9]{1,18}")
BEHAVIOUR = "behaviour_probability"  # within an episode's infos
_OWN = "mmdrl"  # the key of what this library adds to the metadata
_FORMAT_VERSION = "0.5.3"


def find(text: str) -> Optional[pathlib.Path]:
  """The folder with the metadata of a local data set, by path or by id."""
  root = os.environ.get("MINARI_DATASETS_PATH")
  default = pathlib.Path.home() / ".minari" / "datasets"
  for base in (pathlib.Path(text), pathlib.Path(root or default) / text):
    for path in (base, base / "data"):
      if (path / METADATA).is_file():
        return path
  return None


class MinariDataSet(DataSet):
  """Reads one episode at a time."""

  def __init__(self, path: pathlib.Path):
    """Reads the metadata and the episodes' lengths.

    Args:
      path: the folder of metadata.json.
    """
    self.path = path
    self._h5py = optional.require("h5py", use="data sets", extra="offline")
    metadata = self._metadata()
    own = metadata.get(_OWN)
    own = own if isinstance(own, dict) else {}
    self._spaces = minari_spaces.parse(metadata, path)
    shape = own.get("observation_shape") or self._spaces.shape
    with self._open() as file:
      names = sorted(
        (name for name in file if _EPISODE.fullmatch(name)),
        key=lambda name: int(name.partition("_")[2]),
      )
      if not names:
        raise dataset.broken(path, "it has no episodes")
      self._names = names
      rewards = [self._array(file, name, "rewards") for name in names]
      self.lengths = np.array([len(part) for part in rewards], np.int64)
      self.has_behaviour = all(
        f"{name}/infos/{BEHAVIOUR}" in file for name in names
      )
      size = rewards[0].shape[1] if rewards[0].ndim == 2 else 0
    self.description = Description(
      tuple(shape),
      self._spaces.dtype,
      self._spaces.num_actions,
      size,
      own.get("environment") or minari_spaces.environment(metadata),
    )

  def read(self, indices: Sequence[int]) -> Iterator[Episode]:
    """Episodes by number; see the base class."""
    with self._open() as file:
      for index in indices:
        yield self._episode(file, index)

  def _episode(self, file, index: int) -> Episode:
    name = self._names[index]
    try:
      seen = self._spaces.observations(
        lambda key: self._array(file, name, f"observations{key}")
      )
      seen = seen.reshape([len(seen), *self.description.observation_shape])
      actions = self._array(file, name, "actions")[()]
      rewards = self._array(file, name, "rewards")[()].astype(np.float32)
      ends = self._array(file, name, "terminations")[()]
      behaviour = None
      if self.has_behaviour:
        behaviour = self._array(file, name, f"infos/{BEHAVIOUR}")[()]
        # The first of T + 1 came with the reset.
        behaviour = behaviour[-len(actions) :].astype(np.float64)
    except (OSError, KeyError, ValueError) as error:
      raise dataset.broken(
        self.path, f"episode {index} cannot be read: {error}"
      ) from None
    episode = Episode(
      seen[: len(actions)],
      actions.astype(np.int64) - self._spaces.first_action,
      rewards,
      seen[1:],
      bool(ends[-1]) if len(ends) else False,
      behaviour,
    )
    if len(seen) != len(actions) + 1:
      raise dataset.broken(
        self.path,
        f"episode {index} has {len(actions)} actions and {len(seen)}"
        " observations; one more than actions is wanted",
      )
    return dataset.check(episode, self.description, self.path, index)

  def _metadata(self) -> Dict[str, Any]:
    try:
      metadata = json.loads((self.path / METADATA).read_text())
    except (OSError, ValueError) as error:
      raise dataset.broken(
        self.path, f"{METADATA} cannot be read: {error}"
      ) from None
    if not isinstance(metadata, dict):
      raise dataset.broken(self.path, f"{METADATA} holds no object")
    found = metadata.get("data_format", "hdf5")
    if found != "hdf5":
      raise dataset.broken(
        self.path, f"its data_format must be hdf5, got {found!r}"
      )
    return metadata

  def _open(self):
    try:
      return self._h5py.File(self.path / MAIN, "r")
    except OSError as error:
      reason = str(error).rpartition("(")[2].rstrip(")")
      raise dataset.broken(
        self.path, f"{MAIN} is not a whole HDF5 file: {reason}"
      ) from None

  def _array(self, file, name: str, key: str):
    """An array that lies in this very file; links could lead anywhere."""
    place, group = f"{name}/{key}", file
    for part in place.split("/"):
      if not isinstance(group, self._h5py.Group):
        raise dataset.broken(self.path, f"{place!r} is no plain array")
      link = group.get(part, getlink=True)
      if link is None:
        raise dataset.broken(self.path, f"it lacks {place!r}")
      if not isinstance(link, self._h5py.HardLink):
        raise dataset.broken(self.path, f"{place!r} is a link")
      group = group[part]
    if (
      not isinstance(group, self._h5py.Dataset)
      or not group.shape  # a number, or nothing
      or group.is_virtual
      or group.external
    ):
      raise dataset.broken(self.path, f"{place!r} is no plain array")
    return group


class MinariWriter:
  """Writes episodes; the data set has its name when all of them are there."""

  def __init__(
    self, path: pathlib.Path, description: Description, about: Dict[str, Any]
  ):
    """Begins an empty data set beside its place.

    Args:
      path: of the data set, which must not exist.
      description: what its episodes share.
      about: what to add to the metadata under "mmdrl", as JSON values.
    """
    if path.exists():
      raise errors.UserError(
        f"{str(path)!r} exists already; pass another -o, or remove it"
      )
    self._path, self._description, self._about = path, description, about
    self._temporary = path.with_name(f".tmp-{path.name}")
    shutil.rmtree(self._temporary, ignore_errors=True)
    self._h5py = optional.require("h5py", use="data sets", extra="offline")
    self._size = 0  # of what is written or about to be, at most
    try:
      (self._temporary / "data").mkdir(parents=True)
      self._sink = _Sink(self._temporary / "data" / MAIN)
    except OSError as error:
      shutil.rmtree(self._temporary, ignore_errors=True)
      raise full_disk.refused(self._path, error) from error
    self._file = self._h5py.File(self._sink, "w", track_order=True)
    self._lengths: List[int] = []

  def add(self, episode: Episode) -> None:
    """Writes one episode."""
    steps = len(episode.actions)
    seen = np.concatenate(
      [episode.observations, episode.next_observations[-1:]]
    )
    ends = np.zeros([2, steps], bool)
    ends[0 if episode.terminated else 1, -1] = True
    arrays = {
      "observations": seen.reshape([steps + 1, *self._stored_shape()]),
      "actions": episode.actions,
      "rewards": episode.rewards,
      "terminations": ends[0],
      "truncations": ends[1],
    }
    if episode.behaviour is not None:
      arrays[f"infos/{BEHAVIOUR}"] = episode.behaviour
    self._size += sum(array.nbytes for array in arrays.values())
    number = len(self._lengths)
    group = self._file.create_group(f"episode_{number}")
    group.attrs["id"], group.attrs["total_steps"] = number, steps
    for name, array in arrays.items():
      small = name == "observations" and array.dtype.kind in "bu"
      group.create_dataset(
        name, data=array, chunks=True, compression="gzip" if small else None
      )
    self._require_written()
    self._lengths.append(steps)

  def close(self) -> pathlib.Path:
    """Gives the data set its name; returns it."""
    stored = self._description._replace(
      observation_shape=tuple(self._stored_shape())
    )
    metadata = {
      **minari_spaces.metadata(stored),
      "total_episodes": len(self._lengths),
      "total_steps": sum(self._lengths),
      "data_format": "hdf5",
      "dataset_id": minari_spaces.identifier(self._path.name),
      "minari_version": _FORMAT_VERSION,
      _OWN: {
        "environment": self._description.environment,
        "observation_shape": list(self._description.observation_shape),
        **self._about,
      },
    }
    self._file.close()
    self._require_written()
    try:
      self._sink.close()
      text = json.dumps(metadata, indent=2)
      (self._temporary / "data" / METADATA).write_text(text)
      os.rename(self._temporary, self._path)
    except OSError as error:
      raise full_disk.refused(self._path, error, self._size) from error
    return self._path

  def discard(self) -> None:
    """Removes what was written."""
    self._file.close()
    with contextlib.suppress(OSError):
      self._sink.close()
    shutil.rmtree(self._temporary, ignore_errors=True)

  def _require_written(self) -> None:
    if self._sink.failure is not None:
      raise full_disk.refused(
        self._path, self._sink.failure, max(self._size, self._sink.tell())
      ) from self._sink.failure

  def _stored_shape(self) -> Sequence[int]:
    """Minari takes large pictures of bytes for JPEGs, which lose digits."""
    shape = self._description.observation_shape
    is_picture = self._description.observation_dtype == np.uint8
    is_picture = is_picture and len(shape) in (2, 3) and min(shape[:2]) >= 32
    return [int(np.prod(shape))] if is_picture else shape


class _Sink(io.FileIO):
  """A file for HDF5, which ends the process where it cannot write.

  So every write succeeds, as far as HDF5 can see.

  Attributes:
    failure: of the first write that did not; those after it are left out.
  """

  failure: Optional[OSError] = None

  def __init__(self, path: pathlib.Path):
    """Makes the file."""
    super().__init__(path, "w+")

  def write(self, data: Any) -> int:
    """Writes all of `data`, or remembers why not."""
    left = memoryview(data).cast("B")
    with self._remembering():
      while self.failure is None and left:
        left = left[super().write(left) :]
    return memoryview(data).nbytes

  def truncate(self, size: Optional[int] = None) -> int:
    """Gives the file a size, or remembers why not."""
    with self._remembering():
      super().truncate(size)
    return size or 0

  @contextlib.contextmanager
  def _remembering(self) -> Iterator[None]:
    try:
      yield
    except OSError as error:
      self.failure = self.failure or error
