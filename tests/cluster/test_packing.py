"""Chunks travel with each frame once, and arrive as they were."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import trajectory

from tf_mmdrl.cluster import packing
from tf_mmdrl.train.actor import Chunk


def _chunk(observations, scores=(1.5,)):
  length, batch = observations.shape[:2]
  rng = np.random.default_rng(1)
  parts = [
    trajectory.Trajectory(
      step_type=rng.integers(0, 3, [batch]).astype(np.int32),
      observation=observations[time],
      action=rng.integers(0, 4, [batch]),
      policy_info=(),
      next_step_type=rng.integers(0, 3, [batch]).astype(np.int32),
      reward=rng.normal(size=[batch]).astype(np.float32),
      discount=np.ones([batch], np.float32),
    )
    for time in range(length)
  ]
  return Chunk(parts, length * batch, list(scores), 3)


def _games(length, batch, ends, dtype, channels=1, stack=4):
  """Stacks of random frames; where a game ends the next begins with zeros."""
  rng = np.random.default_rng(0)
  now = np.zeros([batch, 5, 6, stack * channels], dtype)
  shown = []
  for time in range(length):
    frame = rng.integers(0, 255, [batch, 5, 6, channels]).astype(dtype)
    now = np.concatenate([now[..., channels:], frame], axis=-1)
    for row in ends.get(time, ()):
      now[row, ..., :-channels] = 0
    shown.append(now.copy())
  return np.stack(shown)


def _assert_same(one, other):
  def same(x, y):
    np.testing.assert_array_equal(x, y)
    assert np.asarray(x).dtype == np.asarray(y).dtype

  tf.nest.map_structure(same, one, other)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_frames_travel_once_and_arrive_as_they_were(dtype, channels):
  ends = {3: [0, 2], 7: [1]}
  shown = _games(9, 3, ends, dtype, channels)
  chunk = _chunk(shown)
  packed = packing.pack(chunk, 4)
  _assert_same(packing.unpack(packed), chunk)
  # All three at the first step, and three games that began.
  assert packed.frames.fresh.sum() == 3 + 3
  frames = 9 * 3 + 6 * 3
  assert packed.frames.newest.nbytes + packed.frames.older.nbytes == (
    frames * 5 * 6 * channels * np.dtype(dtype).itemsize
  )


def test_observations_that_are_no_stacks_travel_whole():
  shown = np.random.default_rng(0).normal(size=[4, 2, 7]).astype(np.float32)
  chunk = _chunk(shown)
  packed = packing.pack(chunk, 1)
  assert packed.frames is None
  _assert_same(packing.unpack(packed), chunk)


def test_what_arrives_holds_nothing_of_what_travelled():
  packed = packing.pack(_chunk(_games(3, 2, {}, np.uint8)), 4)
  arrived = packing.unpack(packed)
  for array in tf.nest.flatten(arrived.trajectories):
    for sent in tf.nest.flatten([packed.steps, packed.frames]):
      assert not np.shares_memory(array, sent)


def test_a_chunk_of_nothing():
  chunk = Chunk([], 0, [], 0)
  assert packing.unpack(packing.pack(chunk, 4)) == chunk
