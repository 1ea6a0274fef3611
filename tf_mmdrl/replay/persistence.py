"""Replay on disk: only what is new is written, and all of it comes back."""

import json
import os
import pathlib
from typing import Any, Collection, Dict, List, Union

import numpy as np

from tf_mmdrl.core import whole_files
from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay.frame_replay import FrameReplay
from tf_mmdrl.replay.frame_replay_buffer import FrameReplayBuffer

_SEGMENT_BYTES = 64 << 20  # before compression; bounds the memory of a save
_SEGMENT = ".arrays"
_MANIFEST = ".json"


class ReplaySaver:
  """Saves a buffer to a directory, again and again.

  Steps are written once, in segments that are never changed: a save costs what
  came in since the save before. A manifest names the segments and holds the
  rest: counts, the generator, the sampler. Any manifest whose segments are
  there can be restored, so the protocol of a checkpoint is

  1. `name = saver.save()`;
  2. the caller commits its own checkpoint, with that name in it;
  3. `saver.prune([names of all checkpoints it keeps])`.

  A crash at any moment leaves the checkpoints that were committed whole.
  """

  def __init__(
    self, buffer: FrameReplayBuffer, directory: Union[str, os.PathLike]
  ):
    """Looks at nothing yet.

    Args:
      buffer: what to save or restore.
      directory: where to save; it is made if need be, and is for this buffer
        only.
    """
    self._replay: FrameReplay = buffer.replay
    self._directory = pathlib.Path(directory)
    self._segments: List[Dict[str, Any]] = []

  def save(self) -> str:
    """Writes what is new, then a manifest; removes nothing.

    Returns:
      The manifest's file name, for `restore` and `prune`.
    """
    self._directory.mkdir(parents=True, exist_ok=True)
    with self._replay.lock:
      store = self._replay.store
      written = [s for s in self._segments if self._is_needed(s)]
      start = max(written[-1]["stop"] if written else 0, store.oldest.min())
      start = int(start)
      step_bytes = max(1, store.nbytes // store.max_length)
      length = max(1, _SEGMENT_BYTES // step_bytes)
      while start < store.head:
        stop = min(start + length, store.head)
        written.append(self._write_steps(start, stop, written))
        start = stop
      name = self._write_manifest(written)
      # Only now: a save that failed must not leave a gap behind.
      self._segments = written
    return name

  def restore(self, name: str) -> None:
    """Makes the buffer what it was when a manifest was saved, bit for bit.

    Args:
      name: what `save` returned.

    Raises:
      DamagedFileError: naming a file that is not as it was written. The buffer
        is empty then, and another manifest can be restored.
      UserError: if the buffer's settings are not those of the saved one.
    """
    with self._replay.lock:
      manifest = whole_files.read_json(self._directory / name)
      self._check_settings(manifest["settings"])
      store, sampler = self._replay.store, self._replay.sampler
      self._replay.clear()
      for segment in manifest["segments"]:
        self._read_steps(segment)
      tables = self._read_tables(manifest["tables"])
      store.head = manifest["head"]
      store.oldest[:] = tables.pop("oldest")
      if store.stacked is not None:
        store.frame_heads[:] = tables.pop("frame_heads")
      store.watch_last()
      self._replay.reopen()
      sampler.set_state(manifest["sampler"], tables)
      self._replay.generator.bit_generator.state = manifest["generator"]
      self._segments = manifest["segments"]

  def head(self, name: str) -> int:
    """Steps ever added to an environment, as of a manifest."""
    return whole_files.read_json(self._directory / name)["head"]

  def prune(self, retain: Collection[str]) -> None:
    """Removes every file that none of the retained manifests needs.

    Args:
      retain: the manifests to keep, as `save` returned them.

    Raises:
      DamagedFileError: if one of them is damaged; nothing is removed then.
    """
    needed = set(retain)
    # The next save builds on these even if their manifest goes.
    needed.update(segment["name"] for segment in self._segments)
    for name in retain:
      manifest = whole_files.read_json(self._directory / name)
      needed.add(manifest["tables"]["name"])
      needed.update(segment["name"] for segment in manifest["segments"])
    for path in self._directory.iterdir():
      ours = path.suffix in (_SEGMENT, _MANIFEST, whole_files.TEMPORARY)
      if ours and path.name not in needed:
        path.unlink()
    whole_files.sync_directory(self._directory)

  def _is_needed(self, segment: Dict[str, Any]) -> bool:
    """Whether a segment holds a step that is kept, or a frame of one."""
    store = self._replay.store
    if segment["stop"] > store.oldest.min():
      return True
    if store.stacked is None or store.oldest.max() == store.head:
      return False
    rows = np.arange(store.batch_size)
    newest = store.newest[rows, store.oldest % store.max_length]
    return bool((segment["frame_stops"] > newest - store.stack + 1).any())

  def _write_steps(
    self, start: int, stop: int, before: List[Dict[str, Any]]
  ) -> Dict[str, Any]:
    """Writes the steps [start, stop) and the frames that came with them."""
    store = self._replay.store
    slots = np.arange(start, stop) % store.max_length
    tables = {
      str(index): ring[:, slots]
      for index, ring in enumerate(store.rings)
      if ring is not None
    }
    entry: Dict[str, Any] = {"start": start, "stop": stop}
    if store.stacked is not None:
      newest = store.newest[:, slots]
      first = np.maximum(
        newest[:, 0] - store.stack + 1,
        store.frame_heads - store.num_frame_slots,
      )
      if before and before[-1]["stop"] == start:
        first = np.maximum(first, before[-1]["frame_stops"])
      stops = newest[:, -1] + 1
      first = np.minimum(first, stops)  # where all frames are gone already
      tables["newest"] = newest
      tables["frame_starts"] = first
      tables["frames"] = np.concatenate(
        [
          store.frames[row, np.arange(begin, end) % store.num_frame_slots]
          for row, (begin, end) in enumerate(zip(first, stops))
        ]
      )
      entry["frame_stops"] = stops.tolist()
    return {**entry, **self._write_tables(f"steps-{start:012d}", tables)}

  def _read_steps(self, segment: Dict[str, Any]) -> None:
    """Puts a segment back; later segments must follow in order."""
    store = self._replay.store
    tables = self._read_tables(segment)
    slots = np.arange(segment["start"], segment["stop"]) % store.max_length
    for index, ring in enumerate(store.rings):
      if ring is not None:
        ring[:, slots] = tables[str(index)]
    if store.stacked is not None:
      store.newest[:, slots] = tables["newest"]
      used = 0
      for row, (begin, end) in enumerate(
        zip(tables["frame_starts"], segment["frame_stops"])
      ):
        places = np.arange(begin, end) % store.num_frame_slots
        store.frames[row, places] = tables["frames"][used : used + end - begin]
        used += end - begin

  def _write_manifest(self, written: List[Dict[str, Any]]) -> str:
    store = self._replay.store
    scalars, tables = self._replay.sampler.state()
    tables = {**tables, "oldest": store.oldest}
    if store.stacked is not None:
      tables["frame_heads"] = store.frame_heads
    stem = f"{store.head:012d}"
    content = {
      "settings": self._settings(),
      "head": store.head,
      "sampler": scalars,
      "generator": self._replay.generator.bit_generator.state,
      "segments": written,
      "tables": self._write_tables(f"tables-{stem}", tables),
    }
    text = json.dumps(content, sort_keys=True).encode()
    name = f"replay-{stem}-{whole_files.digest(text)[:12]}{_MANIFEST}"
    whole_files.write_json(self._directory / name, content)
    return name

  def _write_tables(
    self, stem: str, tables: Dict[str, np.ndarray]
  ) -> Dict[str, str]:
    data = whole_files.encode(tables)
    sha256 = whole_files.digest(data)
    # With the digest in it a name never stands for two contents, so nothing
    # that an older manifest needs is ever replaced.
    name = f"{stem}-{sha256[:12]}{_SEGMENT}"
    whole_files.write(self._directory / name, data)
    return {"name": name, "sha256": sha256}

  def _read_tables(self, entry: Dict[str, Any]) -> Dict[str, np.ndarray]:
    path = self._directory / entry["name"]
    return whole_files.decode(whole_files.read(path, entry["sha256"]))

  def _settings(self) -> Dict[str, Any]:
    """What must be the same for a restore to make sense."""
    store = self._replay.store
    scalars, _ = self._replay.sampler.state()
    fields = [[list(f.shape), f.dtype.str] for f in store.fields]
    return {
      "fields": fields,
      "batch_size": store.batch_size,
      "max_length": store.max_length,
      "stack": store.stack,
      "n_step": self._replay.n_step,
      "sampler": scalars["kind"],
      "alpha": scalars.get("alpha"),
    }

  def _check_settings(self, saved: Dict[str, Any]) -> None:
    for key, ours in self._settings().items():
      if saved[key] != ours:
        raise UserError(
          f"replay was saved with {key} = {saved[key]}, but this buffer has"
          f" {ours}; create it with the saved value"
        )
