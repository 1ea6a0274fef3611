"""Samples are what the environments showed, whatever happened in between."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_oracle import Games, Oracle, assert_same, make_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory

from tf_mmdrl.replay import (
  FrameReplayBuffer,
  PrioritizedSampler,
  UniformSampler,
)
from tf_mmdrl.replay.frame_replay import may_start


def _filled(seed, steps, *, batch_size, max_length, n_step, stack, **kwargs):
  """A buffer and its oracle after the same steps of the same games."""
  sampler = kwargs.pop("sampler", UniformSampler)
  games = Games(seed, batch_size, stack=stack, **kwargs)
  first = games.step()
  spec = make_spec(
    first.observation.shape[1:], tf.as_dtype(first.observation.dtype)
  )
  buffer = FrameReplayBuffer(
    spec, batch_size, max_length, stack=stack, n_step=n_step, sampler=sampler
  )
  slots = buffer.replay.store.num_frame_slots if stack > 1 else 0
  oracle = Oracle(
    batch_size, max_length, stack=stack, frame_slots=slots, n_step=n_step
  )
  for step in [first] + [games.step() for _ in range(steps - 1)]:
    buffer.add_batch(step)
    oracle.add(step)
  return buffer, oracle


def _check_everything(buffer, oracle):
  """Every start that should be there is, and reads as it was shown."""
  num_steps = oracle.n_step + 1
  starts = sorted(oracle.starts())
  assert buffer.num_starts == len(starts)
  retained = sum(len(oracle.retained(r)) for r in range(oracle.batch_size))
  assert int(buffer.num_frames()) == retained
  for items, info in buffer.as_dataset(single_deterministic_pass=True):
    expected = tf.nest.map_structure(
      lambda leaf: leaf[0], oracle.sequence(info.ids, 1)
    )
    assert_same(items, expected)
  if starts:
    planes, info = buffer.sample_planes(1, 16)
    items = buffer.from_planes(planes)
    for k, id_ in enumerate(info.ids[0].numpy()):
      assert id_ in starts
      drawn = tf.nest.map_structure(lambda leaf, k=k: leaf[0, k], items)
      assert_same(drawn, oracle.sequence(id_, num_steps))


@settings(max_examples=40, deadline=None)
@given(
  seed=st.integers(0, 10**6),
  steps=st.integers(1, 60),
  batch_size=st.integers(1, 3),
  room=st.integers(1, 20),
  n_step=st.integers(1, 4),
  stack=st.integers(1, 4),
  mean_length=st.sampled_from([1, 3, 8, 1000]),
  prioritized=st.booleans(),
)
def test_equals_the_oracle(
  seed, steps, batch_size, room, n_step, stack, mean_length, prioritized
):
  buffer, oracle = _filled(
    seed,
    steps,
    batch_size=batch_size,
    max_length=n_step + room,
    n_step=n_step,
    stack=stack,
    mean_length=mean_length,
    sampler=PrioritizedSampler if prioritized else UniformSampler,
  )
  _check_everything(buffer, oracle)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("frame_shape", [(3,), (1,), (4, 4, 1), (2, 3, 3)])
@pytest.mark.parametrize("stack", [1, 2, 3, 4, 8])
def test_every_kind_of_observation(dtype, frame_shape, stack):
  buffer, oracle = _filled(
    3,
    40,
    batch_size=2,
    max_length=12,
    n_step=2,
    stack=stack,
    dtype=dtype,
    frame_shape=frame_shape,
  )
  _check_everything(buffer, oracle)


def test_bits_count_and_not_values():
  """-0.0 == 0.0 and NaN != NaN, but a stack is rebuilt bit for bit."""
  buffer = FrameReplayBuffer(make_spec((2,), tf.float32), 1, 8, stack=2)
  games = Games(0, 1, stack=1, mean_length=1000)
  shown = np.array([[1, 0.0], [-0.0, np.nan], [np.nan, 2]], np.float32)
  for observation in shown:
    buffer.add_batch(games.step()._replace(observation=observation[None]))
  kept = buffer.gather_all().observation[0].numpy()
  np.testing.assert_array_equal(kept.view(np.uint32), shown.view(np.uint32))


def test_caller_may_reuse_its_arrays():
  games = Games(1, 2, mean_length=4)
  buffer = FrameReplayBuffer(make_spec(), 2, 100, stack=4)
  first = tf.nest.map_structure(np.array, games.step())
  shown = []
  for _ in range(20):
    step = games.step()
    tf.nest.map_structure(np.copyto, first, step)
    buffer.add_batch(first)
    shown.append(step.observation)
  kept = buffer.gather_all().observation.numpy()
  np.testing.assert_array_equal(kept, np.stack(shown, axis=1))


def test_a_sample_stays_what_it_was_when_the_ring_moves_on():
  games = Games(2, 2)
  buffer = FrameReplayBuffer(make_spec(), 2, 10, stack=4, n_step=2)
  for _ in range(10):
    buffer.add_batch(games.step())
  items, _ = buffer.sample(8)
  before = tf.nest.map_structure(lambda t: t.numpy().copy(), items)
  for _ in range(40):
    buffer.add_batch(games.step())
    buffer.sample(8)
  assert_same(items, before)


def _twins(n_step):
  """Two buffers with the same steps and the same seed."""
  games = Games(5, 2)
  buffers = [
    FrameReplayBuffer(make_spec(), 2, 10, stack=4, n_step=n_step, seed=7)
    for _ in range(2)
  ]
  for _ in range(30):
    step = games.step()
    for buffer in buffers:
      buffer.add_batch(step)
  return buffers


def test_planes_decoded_inside_a_compiled_step():
  one, two = _twins(n_step=3)
  planes, info = one.sample_planes(3, 5)
  assert planes.observation.shape == [3, 5, 4, 4, 3, 2, 1]
  decoded = tf.function(one.from_planes, jit_compile=True)(planes)
  expected, expected_info = two.sample_batches(3, 5)
  assert_same(decoded, expected)
  assert_same(info, expected_info)


@pytest.mark.parametrize("n_step", [1, 3])
def test_ends_are_the_first_and_the_last_of_the_whole(n_step):
  one, two = _twins(n_step=n_step)
  whole, info = one.sample_planes(3, 5)
  ends, same_info = two.sample_planes(3, 5, ends=True)
  assert_same(info, same_info)
  observation = whole.observation.numpy()[:, :, [0, -1]]
  assert_same(ends, whole._replace(observation=observation))


def test_may_start_by_hand():
  first, mid, last = (int(t) for t in (0, 1, 2))
  assert [ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST] == [0, 1, 2]
  step_type = np.array(
    [
      [first, mid, mid],
      [last, first, mid],  # starts at a boundary
      [mid, last, first],  # over a true end
      [mid, last, first],  # over an end that was cut short
      [mid, mid, last],  # cut short right after: the third step would follow
      [mid, mid, mid],  # a life lost
    ]
  )
  discount = np.array(
    [[1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 1.0]]
  )
  expected = [True, False, True, False, False, True]
  np.testing.assert_array_equal(may_start(step_type, discount), expected)


def test_frames_are_kept_once():
  """Long games: one frame a step, and four at the start of each."""
  games = Games(0, 2, mean_length=50)
  buffer = FrameReplayBuffer(make_spec(), 2, 1000, stack=4)
  starts = np.zeros(2, int)
  for _ in range(400):
    step = games.step()
    starts += step.step_type == 0
    buffer.add_batch(step)
  expected = 400 + 3 * starts
  np.testing.assert_array_equal(buffer.replay.store.frame_heads, expected)


def test_a_million_atari_steps_fit():
  spec = make_spec((84, 84, 4))
  buffer = FrameReplayBuffer(spec, 8, 125_000, stack=4, n_step=3)
  frames = buffer.replay.store.frames.nbytes
  assert buffer.capacity == 1_000_000
  assert 7.05e9 < frames < 7.2e9
  assert buffer.nbytes < 7.25e9
  step = trajectory.Trajectory(
    *[np.zeros([8, *s.shape], s.dtype.as_numpy_dtype) for s in spec[:3]],
    (),
    *[np.zeros([8], s.dtype.as_numpy_dtype) for s in spec[4:]],
  )
  buffer.add_batch(step)  # and memory is only taken as it is used
  assert int(buffer.num_frames()) == 8
