"""Draws from several shards, against what one large replay would give."""

import functools

import numpy as np
import pytest
from replay_oracle import Games, Oracle, assert_same, make_spec

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay import (
  FrameReplayBuffer,
  PrioritizedSampler,
  ShardedReplay,
  UniformSampler,
  fingerprint,
)

_PRIORITIZED = functools.partial(PrioritizedSampler, alpha=0.5)
_SAMPLERS = pytest.mark.parametrize("sampler", [UniformSampler, _PRIORITIZED])
_N_STEP, _BATCH = 2, 2


def _filled(sampler, steps, *, max_length=20):
  """A replay with a shard for each number of steps, and oracles of them."""
  shards, oracles = [], []
  for seed, count in enumerate(steps):
    shard = FrameReplayBuffer(
      make_spec(),
      _BATCH,
      max_length,
      stack=4,
      n_step=_N_STEP,
      sampler=sampler,
      seed=seed,
    )
    oracle = Oracle(
      _BATCH,
      max_length,
      stack=4,
      frame_slots=shard.replay.store.num_frame_slots,
      n_step=_N_STEP,
    )
    games = Games(seed, _BATCH)
    for _ in range(count):
      step = games.step()
      shard.add_batch(step)
      oracle.add(step)
    shards.append(shard)
    oracles.append(oracle)
  return ShardedReplay(shards), oracles


def _starts(oracles):
  """[count] the ids of all open starts, in order."""
  found = [
    start * len(oracles) + index
    for index, oracle in enumerate(oracles)
    for start in oracle.starts()
  ]
  return np.array(sorted(found))


def _check_frequencies(ids, starts, shares):
  """Chi square: mean k, standard deviation sqrt(2 k)."""
  drawn, counts = np.unique(ids, return_counts=True)
  np.testing.assert_array_equal(drawn, starts)  # all of them, and no other
  expected = shares * ids.size
  statistic = ((counts - expected) ** 2 / expected).sum()
  k = starts.size - 1
  assert statistic < k + 5 * np.sqrt(2 * k)


@_SAMPLERS
def test_one_shard_gives_the_bits_of_its_buffer(sampler):
  sharded, _ = _filled(sampler, [33])
  alone, _ = _filled(sampler, [33])
  (buffer,) = alone.shards
  for _ in range(3):
    drawn = sharded.sample_planes(3, 8, beta=0.6, ends=True)
    same = buffer.sample_planes(3, 8, beta=0.6, ends=True)
    assert_same(drawn, same)
    if sharded.is_prioritized:
      priorities = np.linspace(0.1, 3, 24).reshape([3, 8])
      sharded.update_priorities(drawn[1].ids, priorities)
      buffer.update_priorities(same[1].ids, priorities)
  assert fingerprint(*sharded.shards) == fingerprint(buffer)


@_SAMPLERS
def test_all_open_starts_are_drawn_alike(sampler):
  """In shards that are wrapped, part filled, empty, and without a start."""
  replay, oracles = _filled(sampler, [45, 7, 0, 2, 20])
  _check_alike(replay, oracles)


def test_few_open_starts_are_listed_over_all_shards():
  replay, oracles = _filled(UniformSampler, [0, 150, 90], max_length=300)
  for seed, (shard, oracle) in enumerate(zip(replay.shards, oracles)):
    games = Games(seed + 3, _BATCH)
    shard.clear()
    oracle.clear()
    for _ in range(4 * seed):
      step = games.step()
      shard.add_batch(step)
      oracle.add(step)
  assert _starts(oracles).size < 480 / 8  # one in eight, of those ever used
  _check_alike(replay, oracles)


def _check_alike(replay, oracles):
  starts = _starts(oracles)
  _, info = replay.sample_planes(2000, 10)
  shares = np.full(starts.size, 1 / starts.size)
  _check_frequencies(info.ids.numpy(), starts, shares)
  np.testing.assert_allclose(info.probabilities, shares[0], rtol=1e-6)
  np.testing.assert_array_equal(info.weights, np.ones([2000, 10]))


def test_priorities_count_over_all_shards():
  replay, oracles = _filled(_PRIORITIZED, [45, 0, 9])
  starts = _starts(oracles)
  priorities = np.linspace(0.1, 5, starts.size) ** 2
  order = np.random.default_rng(0).permutation(starts.size)
  replay.update_priorities(starts[order], priorities[order])
  shares = priorities**0.5 / (priorities**0.5).sum()
  _, info = replay.sample_planes(2000, 10, beta=0.7)
  ids = info.ids.numpy()
  _check_frequencies(ids, starts, shares)
  drawn = shares[np.searchsorted(starts, ids)]
  np.testing.assert_allclose(info.probabilities, drawn, rtol=1e-5)
  # (N P)^-beta over its largest: N falls out.
  weights = (drawn.min(axis=1, keepdims=True) / drawn) ** 0.7
  np.testing.assert_allclose(info.weights, weights, rtol=1e-5)


def test_a_draw_by_priority_is_a_point_in_the_mass_laid_end_to_end():
  """Powers of four: their roots are exact in any order of summing."""
  replay, oracles = _filled(_PRIORITIZED, [45, 0, 9])
  rng = np.random.default_rng(1)
  starts = _starts(oracles)
  replay.update_priorities(starts, 4.0 ** rng.integers(-3, 4, starts.size))
  leaves = [s.replay.sampler.state()[1]["weights"] for s in replay.shards]
  mass = np.concatenate(leaves).astype(np.float64)
  generator = np.random.Generator(np.random.PCG64(0))
  shares = (np.arange(8) + generator.random((5, 8))) / 8
  places = np.searchsorted(np.cumsum(mass), shares * mass.sum(), "right")
  owners, slots = np.divmod(places, leaves[0].size)
  wanted = [
    replay.shards[owner].replay.ids(np.array(slot)) * 3 + owner
    for owner, slot in zip(owners.flat, slots.flat)
  ]
  _, info = replay.sample_planes(5, 8)
  np.testing.assert_array_equal(info.ids.numpy().reshape([-1]), wanted)


def test_a_point_that_rounds_to_the_end_is_the_last_start():
  """Of the last shard that has any."""
  replay, oracles = _filled(_PRIORITIZED, [9, 9, 0])

  class AlwaysLast:
    def random(self, shape):
      return np.full(shape, np.nextafter(1, 0))

  replay.shards[0].replay.generator = AlwaysLast()
  _, info = replay.sample_planes(1, 4)
  start, owner = divmod(int(info.ids[0, -1]), 3)
  assert owner == 1
  rows = [step % _BATCH for step in oracles[1].starts()]
  last = [s for s, row in zip(oracles[1].starts(), rows) if row == max(rows)]
  assert start == max(last)


@_SAMPLERS
def test_what_is_read_is_what_was_added(sampler):
  replay, oracles = _filled(sampler, [45, 9])
  planes, info = replay.sample_planes(3, 8)
  read = replay.shards[0].from_planes(planes)
  for k in range(3):
    for b in range(8):
      start, index = divmod(int(info.ids[k, b]), 2)
      wanted = oracles[index].sequence(start, _N_STEP + 1)
      for name in ("step_type", "observation", "action", "reward", "discount"):
        part = getattr(read, name)[k, b].numpy()
        np.testing.assert_array_equal(part, getattr(wanted, name))


def test_what_is_new_has_the_largest_priority_of_all_shards():
  replay, oracles = _filled(_PRIORITIZED, [9, 9])
  starts = _starts(oracles)
  first = starts[starts % 2 == 0]
  replay.update_priorities(first[:1], np.array([64.0]))
  games = Games(5, _BATCH, mean_length=1000)
  for _ in range(_N_STEP + 1):
    replay.shards[1].add_batch(games.step())
  weights = replay.shards[1].replay.sampler.state()[1]["weights"]
  assert weights.max() == 8


def test_the_fingerprint_is_of_all_shards():
  (one, _), (two, _) = (_filled(UniformSampler, [9, n]) for n in (9, 9))
  assert fingerprint(*one.shards) == fingerprint(*two.shards)
  two.shards[1].add_batch(Games(5, _BATCH).step())
  assert fingerprint(*one.shards) != fingerprint(*two.shards)
  assert one.num_steps == 36 and two.num_steps == 38


def test_nothing_in_any_shard():
  replay, _ = _filled(UniformSampler, [2, 2, 0])
  with pytest.raises(UserError, match="none of the 8 steps .* sequence of 3"):
    replay.sample_planes(1, 1)
