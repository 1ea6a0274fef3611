"""Transitions in plain NPZ or CSV files; docs/offline.md has the schema.

Both are read part by part: an episode's rows are found by their numbers in an
NPZ file, and by their bytes in a CSV file.
"""

import csv
import io
import pathlib
import zipfile
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.offline import dataset
from tf_mmdrl.offline.dataset import DataSet, Description, Episode

_SKIPPED = 2**18  # bytes at a time, on the way to a row
_NEEDED = ("observations", "actions", "rewards", "next_observations")
_ENDS = "terminations"
_BEHAVIOUR = "behaviour_probabilities"
# Columns of a CSV file; observations are observation_0, observation_1, ...
_COLUMNS = ("action", "reward", "terminated")
_SEEN, _NEXT = "observation_", "next_observation_"


class _Member(NamedTuple):
  """An array within an NPZ file: its header, and where its rows begin."""

  name: str
  shape: Tuple[int, ...]
  dtype: np.dtype
  start: int

  @property
  def row_bytes(self) -> int:
    return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize


class NPZDataSet(DataSet):
  """Transitions [T, ...] in the arrays of an NPZ file."""

  def __init__(self, path: pathlib.Path):
    """Reads the headers, and where episodes begin."""
    self.path = path
    self._members = self._headers()
    for name in (*_NEEDED, _ENDS):
      if name not in self._members:
        raise dataset.broken(
          path,
          f"it lacks the array {name!r}; it has"
          f" {', '.join(sorted(self._members)) or 'none'}",
        )
    rows = {name: member.shape[:1] for name, member in self._members.items()}
    known = {name: rows[name] for name in (*_NEEDED, _ENDS)}
    if len(set(known.values())) != 1 or not known["actions"][0]:
      raise dataset.broken(
        path, f"its arrays must have as many rows each, above 0, got {known}"
      )
    if self._members["actions"].dtype.kind not in "iu":
      raise dataset.broken(
        path,
        "actions must be whole numbers, got"
        f" {self._members['actions'].dtype}; continuous actions are not"
        " supported",
      )
    num_rows = known["actions"][0]
    self.counts_actions = "num_actions" not in self._members
    whole = self._read([_ENDS, "truncations", "episodes"], 0, num_rows)
    self._starts = _starts(
      whole[_ENDS].astype(bool), whole.get("truncations"), whole.get("episodes")
    )
    self.lengths = np.diff(self._starts)
    self.has_behaviour = _BEHAVIOUR in self._members
    seen, rewards = self._members["observations"], self._members["rewards"]
    self.description = Description(
      seen.shape[1:],
      np.dtype(np.float32) if seen.dtype.kind == "f" else seen.dtype,
      self._num_actions(num_rows),
      rewards.shape[1] if len(rewards.shape) == 2 else 0,
    )

  def read(self, indices: Sequence[int]) -> Iterator[Episode]:
    """Episodes by number; see the base class."""
    names = [*_NEEDED, _ENDS, _BEHAVIOUR]
    for index in indices:
      first, last = self._starts[index : index + 2]
      part = self._read(names, int(first), int(last))
      behaviour = part.get(_BEHAVIOUR)
      dtype = self.description.observation_dtype
      episode = Episode(
        part["observations"].astype(dtype, copy=False),
        part["actions"].astype(np.int64),
        part["rewards"].astype(np.float32),
        part["next_observations"].astype(dtype, copy=False),
        bool(part[_ENDS][-1]),
        None if behaviour is None else behaviour.astype(np.float64),
      )
      yield dataset.check(episode, self.description, self.path, index)

  def _num_actions(self, num_rows: int) -> int:
    if "num_actions" in self._members:
      member = self._members["num_actions"]
      found = self._rows(member, 0, 1 if member.shape else None)
      return int(np.ravel(found)[0])
    actions = self._read(["actions"], 0, num_rows)["actions"]
    return int(actions.max()) + 1

  def _headers(self) -> Dict[str, _Member]:
    found = {}
    try:
      with zipfile.ZipFile(self.path) as archive:
        for info in archive.infolist():
          name = info.filename.removesuffix(".npy")
          with archive.open(info) as file:
            version = np.lib.format.read_magic(file)
            reader = (
              np.lib.format.read_array_header_1_0
              if version == (1, 0)
              else np.lib.format.read_array_header_2_0
            )
            shape, in_columns, dtype = reader(file)
            start = file.tell()
          if dtype.hasobject or in_columns and len(shape) > 1:
            raise dataset.broken(
              self.path,
              f"the array {name!r} must hold plain numbers row by row, got"
              f" {dtype}",
            )
          found[name] = _Member(info.filename, shape, dtype, start)
    except (OSError, zipfile.BadZipFile, ValueError, EOFError) as error:
      if isinstance(error, dataset.errors.UserError):
        raise
      raise dataset.broken(
        self.path, f"it is not a whole NPZ file: {error}"
      ) from None
    return found

  def _read(
    self, names: Sequence[str], first: int, last: int
  ) -> Dict[str, np.ndarray]:
    return {
      name: self._rows(self._members[name], first, last)
      for name in names
      if name in self._members
    }

  def _rows(
    self, member: _Member, first: int, last: Optional[int]
  ) -> np.ndarray:
    """Rows of an array; all of a number, whose `last` is None."""
    count = 1 if last is None else last - first
    try:
      with (
        zipfile.ZipFile(self.path) as archive,
        archive.open(member.name) as file,
      ):
        ahead = member.start + first * member.row_bytes
        while ahead:  # by itself, seek would hold 16 MB
          ahead -= len(file.read(min(ahead, _SKIPPED))) or ahead
        data = file.read(count * member.row_bytes)
    except (OSError, zipfile.BadZipFile, EOFError) as error:
      raise dataset.broken(
        self.path, f"{member.name!r} cannot be read: {error}"
      ) from None
    if len(data) < count * member.row_bytes:
      raise dataset.broken(self.path, f"{member.name!r} is cut short")
    return np.frombuffer(data, member.dtype).reshape([count, *member.shape[1:]])


class CSVDataSet(DataSet):
  """One transition in each line of a CSV file."""

  counts_actions = True

  def __init__(self, path: pathlib.Path):
    """Reads the file once, to find where episodes begin."""
    self.path = path
    places: List[int] = []
    ends, cut, episodes, actions = [], [], [], []
    with self._open() as file:
      self._header = self._columns(file.readline())
      while True:
        place = file.tell()
        line = file.readline()
        if not line.strip():
          if file.read().strip():
            raise dataset.broken(
              path,
              f"line {len(places) + 2} is blank, but lines follow; remove it",
            )
          break
        row = self._row(line, len(places) + 2)
        places.append(place)
        ends.append(row["terminated"] > 0)
        cut.append(row.get("truncated", 0) > 0)
        episodes.append(row.get("episode", 0))
        actions.append(row["action"])
    if not places:
      raise dataset.broken(path, "it has no transitions")
    if any(not float(action).is_integer() for action in actions):
      raise dataset.broken(
        path,
        "actions must be whole numbers; continuous actions are not supported",
      )
    starts = _starts(np.array(ends), np.array(cut), np.array(episodes))
    self.lengths = np.diff(starts)
    self._first_lines = starts[:-1] + 2
    self._places = [places[start] for start in starts[:-1]]
    self.has_behaviour = "behaviour_probability" in self._header
    self._seen = self._numbered(_SEEN)
    self._next = self._numbered(_NEXT)
    if not self._seen or len(self._seen) != len(self._next):
      raise dataset.broken(
        path,
        f"as many columns {_SEEN}0, ... as {_NEXT}0, ... are wanted, got"
        f" {len(self._seen)} and {len(self._next)}",
      )
    self.description = Description(
      (len(self._seen),), np.dtype(np.float32), int(max(actions)) + 1
    )

  def read(self, indices: Sequence[int]) -> Iterator[Episode]:
    """Episodes by number; see the base class."""
    with self._open() as file:
      for index in indices:
        file.seek(self._places[index])
        first = int(self._first_lines[index])
        rows = [
          self._row(file.readline(), first + step)
          for step in range(self.lengths[index])
        ]

        def column(name, rows=rows):
          return np.array([row[name] for row in rows])

        def columns(names, column=column):
          return np.stack([column(name) for name in names], 1).astype("f4")

        behaviour = None
        if self.has_behaviour:
          behaviour = column("behaviour_probability")
        episode = Episode(
          columns(self._seen),
          column("action").astype(np.int64),
          column("reward").astype(np.float32),
          columns(self._next),
          bool(rows[-1]["terminated"]),
          behaviour,
        )
        yield dataset.check(episode, self.description, self.path, index)

  def _open(self) -> io.BufferedReader:
    try:
      return open(self.path, "rb")
    except OSError as error:
      raise dataset.broken(self.path, str(error.strerror)) from None

  def _columns(self, line: bytes) -> List[str]:
    header = [name.strip() for name in _cells(line)]
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
      raise dataset.broken(
        self.path,
        f"its first line must name the columns {', '.join(_COLUMNS)},"
        f" {_SEEN}0, ... and {_NEXT}0, ...; it lacks {', '.join(missing)}",
      )
    return header

  def _numbered(self, prefix: str) -> List[str]:
    """Columns by their numbers."""
    names = [name for name in self._header if name.startswith(prefix)]
    for name in names:
      if not name[len(prefix) :].isdecimal():
        raise dataset.broken(
          self.path,
          f"the columns {prefix}0, {prefix}1, ... are wanted, got {name!r}",
        )
    return sorted(names, key=lambda name: int(name[len(prefix) :]))

  def _row(self, line: bytes, number: int) -> Dict[str, float]:
    cells = _cells(line)
    try:
      if len(cells) != len(self._header):
        raise ValueError(f"{len(self._header)} cells are wanted")
      return {name: _number(cell) for name, cell in zip(self._header, cells)}
    except ValueError as error:
      raise dataset.broken(
        self.path, f"line {number} cannot be read: {error}"
      ) from None


def _cells(line: bytes) -> List[str]:
  return next(csv.reader([line.decode("utf-8", "replace")]), [])


def _number(cell: str) -> float:
  words = {"true": 1.0, "false": 0.0}
  found = words.get(cell.strip().lower())
  return float(cell) if found is None else found


def _starts(
  ends: np.ndarray, cut: Optional[np.ndarray], episodes: Optional[np.ndarray]
) -> np.ndarray:
  """[E + 1] rows at which episodes begin, and the number of rows.

  Args:
    ends: [T] whether a row ended its episode.
    cut: [T] whether its episode was cut off there, if the file says so.
    episodes: [T] which episode a row belongs to, if the file says so.
  """
  last = ends.copy()
  if cut is not None:
    last |= cut.astype(bool)
  if episodes is not None:
    last[:-1] |= episodes[1:] != episodes[:-1]
  last[-1] = True
  return np.concatenate([[0], np.flatnonzero(last) + 1])
