"""Saved replay comes back bit for bit, or says which file is damaged."""

import functools
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from replay_oracle import Games, assert_same, make_spec

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.core.whole_files import decode, encode
from tf_mmdrl.replay import (
  DamagedFileError,
  FrameReplayBuffer,
  PrioritizedSampler,
  ReplaySaver,
  UniformSampler,
  fingerprint,
  persistence,
)

_SAMPLERS = [UniformSampler, functools.partial(PrioritizedSampler, alpha=0.7)]


def _buffer(sampler=UniformSampler, **kwargs):
  options = {"stack": 4, "n_step": 2, "seed": 3, **kwargs}
  return FrameReplayBuffer(make_spec(), 2, 30, sampler=sampler, **options)


def _use(buffer, games, steps):
  """What training does: add, draw, set priorities. Returns what was drawn."""
  drawn = []
  for _ in range(steps):
    buffer.add_batch(games.step())
    if buffer.num_starts:
      planes, info = buffer.sample_planes(1, 4)
      drawn.append((planes, info))
      if isinstance(buffer.replay.sampler, PrioritizedSampler):
        ids = info.ids.numpy()
        buffer.update_priorities(ids, np.abs(np.sin(ids)) * 3)
  return drawn


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
  """Several segments a save, as a large buffer has."""
  monkeypatch.setattr(persistence, "_SEGMENT_BYTES", 700)


@pytest.mark.parametrize("sampler", _SAMPLERS)
@pytest.mark.parametrize("stack", [1, 2, 4])
@pytest.mark.parametrize("mean_length", [2, 10, 1000])
def test_goes_on_as_if_never_saved(tmp_path, sampler, stack, mean_length):
  """Saves at several fills, also two in a row and after a whole lap."""
  make = functools.partial(_buffer, sampler, stack=stack)
  buffer, games = make(), Games(1, 2, mean_length=mean_length)
  saver = ReplaySaver(buffer, tmp_path)
  for steps in (0, 5, 0, 20, 10, 70, 3):
    _use(buffer, games, steps)
    name = saver.save()
    other = make()
    ReplaySaver(other, tmp_path).restore(name)
    assert fingerprint(other) == fingerprint(buffer)
    assert_same(other.gather_all(), buffer.gather_all())
  same_games = Games(1, 2, mean_length=mean_length)
  for _ in range(108):
    same_games.step()
  for one, two in zip(_use(buffer, games, 40), _use(other, same_games, 40)):
    assert_same(one, two)
  assert fingerprint(other) == fingerprint(buffer)


def _overwrite(ring, head):
  ring[1, (head - 2) % ring.shape[1]] = 77


def test_fingerprint_sees_everything():
  def after(change):
    buffer = _buffer(PrioritizedSampler)
    _use(buffer, Games(0, 2), 40)
    change(buffer)
    return fingerprint(buffer)

  changes = [
    lambda b: None,
    lambda b: b.sample_planes(1, 1),
    lambda b: b.add_batch(Games(0, 2).step()),
    lambda b: b.update_priorities(b.sample_planes(1, 1)[1].ids, [[9.0]]),
    lambda b: b.clear(),
    lambda b: _overwrite(b.replay.store.frames, b.replay.store.frame_heads[1]),
    lambda b: _overwrite(b.replay.store.rings[2], 40),
  ]
  assert len({after(change) for change in changes}) == len(changes)
  assert after(changes[0]) == after(changes[0])


def test_only_what_is_new_is_written(tmp_path):
  buffer, games = _buffer(), Games(1, 2, mean_length=1000)
  saver = ReplaySaver(buffer, tmp_path)
  _use(buffer, games, 25)
  saver.save()
  before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
  _use(buffer, games, 2)
  saver.save()
  after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
  assert before.items() <= after.items()
  new = sorted(name.split("-")[0] for name in after.keys() - before.keys())
  assert new == ["replay", "steps", "tables"]


def test_a_resumed_run_writes_only_what_is_new(tmp_path):
  buffer, games = _buffer(), Games(1, 2, mean_length=1000)
  _use(buffer, games, 25)
  name = ReplaySaver(buffer, tmp_path).save()
  resumed = _buffer()
  saver = ReplaySaver(resumed, tmp_path)
  saver.restore(name)
  before = set(os.listdir(tmp_path))
  _use(resumed, games, 2)
  name = saver.save()
  new = sorted(n.split("-")[0] for n in set(os.listdir(tmp_path)) - before)
  assert new == ["replay", "steps", "tables"]
  again = _buffer()
  ReplaySaver(again, tmp_path).restore(name)
  assert fingerprint(again) == fingerprint(resumed)


def test_prune_keeps_what_retained_manifests_need(tmp_path):
  buffer, games = _buffer(), Games(1, 2)
  saver = ReplaySaver(buffer, tmp_path)
  prints = {}
  for _ in range(12):
    _use(buffer, games, 9)
    name = saver.save()
    prints[name] = fingerprint(buffer)
    retain = list(prints)[-3:]
    saver.prune(retain)
    (tmp_path / "steps-left-over.arrays.tmp").touch()
    for kept in retain:
      other = _buffer()
      ReplaySaver(other, tmp_path).restore(kept)
      assert fingerprint(other) == prints[kept]
  (tmp_path / "notes.txt").write_text("not ours")
  saver.prune(retain[-1:])
  names = os.listdir(tmp_path)
  assert "notes.txt" in names
  assert not [n for n in names if n.endswith(".tmp")]
  assert [n for n in names if n.endswith(".json")] == retain[-1:]
  # 30 steps are kept; segments that hold none of them are gone.
  head = buffer.replay.store.head
  starts = [int(n.split("-")[1]) for n in names if n.startswith("steps")]
  assert min(starts) >= head - 30 - 30


def test_pruning_the_newest_does_not_break_the_next_save(tmp_path):
  buffer, games = _buffer(), Games(1, 2)
  saver = ReplaySaver(buffer, tmp_path)
  _use(buffer, games, 9)
  old = saver.save()
  _use(buffer, games, 9)
  saver.save()  # a checkpoint that its caller could not commit
  saver.prune([old])
  _use(buffer, games, 3)
  name = saver.save()
  other = _buffer()
  ReplaySaver(other, tmp_path).restore(name)
  assert fingerprint(other) == fingerprint(buffer)


def _damages():
  def flip(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

  return {
    "flipped": flip,
    "cut": lambda data: data[:-1],
    "empty": lambda data: b"",
    "missing": None,
  }


@pytest.mark.parametrize("kind", list(_damages()))
def test_damage_is_found_and_named(tmp_path, kind):
  damage = _damages()[kind]
  buffer, games = _buffer(PrioritizedSampler), Games(1, 2)
  saver = ReplaySaver(buffer, tmp_path)
  _use(buffer, games, 20)
  old, old_print = saver.save(), fingerprint(buffer)
  before = set(os.listdir(tmp_path))
  _use(buffer, games, 9)
  new, new_print = saver.save(), fingerprint(buffer)
  files = sorted(set(os.listdir(tmp_path)) - before)
  assert len(files) >= 3
  for name in files:
    path = tmp_path / name
    data = path.read_bytes()
    path.unlink()
    if damage:
      path.write_bytes(damage(data))
    other = _buffer(PrioritizedSampler)
    saver = ReplaySaver(other, tmp_path)
    with pytest.raises(DamagedFileError, match=name):
      saver.restore(new)
    assert int(other.num_frames()) == other.num_starts == 0
    saver.restore(old)  # the same buffer falls back
    assert fingerprint(other) == old_print
    path.write_bytes(data)
  saver.restore(new)
  assert fingerprint(other) == new_print


class _KilledError(BaseException):
  """Not an Exception: nothing may catch it and tidy up, as after kill -9."""


def _kill_at(monkeypatch, moment):
  """Kills at the moment-th call that touches the disk, before or after it."""
  calls = {"left": moment // 2, "count": 0}

  def wrap(module, name):
    real = getattr(module, name)

    def call(*args, **kwargs):
      calls["count"] += 1
      due = calls["left"] == 0
      calls["left"] -= 1
      if due and moment % 2 == 0:
        raise _KilledError
      result = real(*args, **kwargs)
      if due:
        raise _KilledError
      return result

    monkeypatch.setattr(module, name, call)

  wrap(os, "fsync")
  wrap(os, "replace")
  wrap(pathlib.Path, "unlink")
  return calls


def test_killed_at_any_moment(tmp_path, monkeypatch):
  """Whatever was committed before a kill can be restored after it."""
  moment, killed = 0, True
  while killed:
    directory = tmp_path / str(moment)
    buffer, games = _buffer(PrioritizedSampler), Games(1, 2)
    saver = ReplaySaver(buffer, directory)
    _use(buffer, games, 28)
    committed = saver.save()
    expected = fingerprint(buffer)
    _use(buffer, games, 40)
    killed = False
    with monkeypatch.context() as patch:
      _kill_at(patch, moment)
      try:
        name = saver.save()
        committed, expected = name, fingerprint(buffer)
        saver.prune([committed])
      except _KilledError:
        killed = True
    resumed = _buffer(PrioritizedSampler)
    saver = ReplaySaver(resumed, directory)
    saver.restore(committed)
    assert fingerprint(resumed) == expected
    saver.prune([committed])
    assert not list(directory.glob("*.tmp"))
    _use(resumed, games, 5)
    again = _buffer(PrioritizedSampler)
    ReplaySaver(again, directory).restore(saver.save())
    assert fingerprint(again) == fingerprint(resumed)
    moment += 1
  assert moment > 40


def test_full_disk_loses_nothing(tmp_path, monkeypatch):
  buffer, games = _buffer(), Games(1, 2)
  saver = ReplaySaver(buffer, tmp_path)
  _use(buffer, games, 20)
  first, first_print = saver.save(), fingerprint(buffer)
  _use(buffer, games, 9)
  with monkeypatch.context() as patch:

    def full(*_):
      raise OSError(28, "No space left on device")

    patch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
      saver.save()
  assert not list(tmp_path.glob("*.tmp"))
  other = _buffer()
  ReplaySaver(other, tmp_path).restore(first)
  assert fingerprint(other) == first_print
  ReplaySaver(other, tmp_path).restore(saver.save())
  assert fingerprint(other) == fingerprint(buffer)


@pytest.mark.parametrize(
  "change, field",
  [
    ({"n_step": 1}, "n_step = 2, but this buffer has 1"),
    ({"stack": 2}, "stack = 4, but this buffer has 2"),
    ({"sampler": PrioritizedSampler}, "sampler = uniform, .* prioritized"),
  ],
)
def test_changed_settings_are_named(tmp_path, change, field):
  name = ReplaySaver(_buffer(), tmp_path).save()
  with pytest.raises(UserError, match=field):
    ReplaySaver(_buffer(**change), tmp_path).restore(name)


def test_arrays_survive_encoding():
  tables = {
    "empty": np.zeros([0, 3], np.float32),
    "scalar": np.array(7, np.int64),
    "strided": np.arange(24, dtype=np.uint8).reshape(4, 6)[:, ::2],
    "bool": np.array([True, False]),
  }
  decoded = decode(encode(tables))
  assert decoded.keys() == tables.keys()
  for name, table in tables.items():
    assert_same(tf.nest.flatten(decoded[name]), tf.nest.flatten(table))
