"""Draws: in proportion, with the right weights, and the same every time."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_oracle import Games, assert_same, make_spec

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay import (
  FrameReplayBuffer,
  PrioritizedSampler,
  UniformSampler,
)
from tf_mmdrl.replay.sum_tree import SumTree

_SAMPLERS = [UniformSampler, PrioritizedSampler]


def _buffer(sampler=UniformSampler, *, steps=40, n_step=1, seed=0, **kwargs):
  buffer = FrameReplayBuffer(
    make_spec(), 2, 20, stack=4, n_step=n_step, sampler=sampler, seed=seed
  )
  games = Games(4, 2, **kwargs)
  for _ in range(steps):
    buffer.add_batch(games.step())
  return buffer


def _ids(buffer, batches=2000, batch_size=10):
  return buffer.sample_planes(batches, batch_size)[1].ids.numpy()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 9000), st.integers(0, 10**6))
def test_sum_tree_equals_cumulated_sums(size, seed):
  rng = np.random.default_rng(seed)
  tree = SumTree(size)
  weights = np.zeros(size, np.float32)
  for _ in range(4):
    indices = rng.integers(size, size=rng.integers(1, 50))
    # Powers of two: sums are exact in any order.
    new = (2.0 ** rng.integers(-3, 4, indices.size)).astype(np.float32)
    new *= rng.random(new.size) < 0.8
    tree.set(indices, new)
    for index, weight in zip(indices, new):
      weights[index] = weight
  np.testing.assert_array_equal(tree.leaves, weights)
  assert tree.total == weights.sum(dtype=np.float64)
  if tree.total:
    points = rng.random(100) * tree.total
    found, of_weight = tree.find(points)
    expected = np.searchsorted(np.cumsum(weights, dtype=float), points, "right")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(of_weight, weights[expected])


def test_sum_tree_never_finds_nothing():
  """Points that rounding carries past the end still hit a positive leaf."""
  rng = np.random.default_rng(0)
  tree = SumTree(5000)
  tree.set(np.arange(0, 4000, 3), rng.random(1334) * 10.0**-(5.0))
  tree.set(np.array([17]), 1e7)
  ends = np.nextafter(tree.total, 0) * np.array([1, 1 - 1e-16, 1 - 1e-15])
  _, weights = tree.find(np.concatenate([[0.0], ends]))
  assert (weights > 0).all()


def test_sum_tree_passes_over_zeros_at_the_start_of_a_block():
  """A point on the edge of two blocks is in the later one's first weight."""
  rng = np.random.default_rng(2)
  tree = SumTree(1000)
  tree.set(np.flatnonzero(np.arange(1000) % 128 > 40), rng.random(672) + 0.1)
  edges = np.cumsum(tree._sums)[:-1]
  points = np.concatenate([edges, np.nextafter(edges, 0)])
  _, weights = tree.find(points)
  assert (weights > 0).all()


def test_sum_tree_forgets_its_history():
  rng = np.random.default_rng(1)
  one, two = SumTree(5000), SumTree(5000)
  for _ in range(50):
    one.set(rng.integers(5000, size=32), rng.random(32))
  two.set_all(one.leaves)
  np.testing.assert_array_equal(one._sums, two._sums)


@pytest.mark.parametrize("sampler", _SAMPLERS)
@pytest.mark.parametrize("steps", [12, 40])  # part of the ring, and wrapped
def test_uniform_frequencies(sampler, steps):
  buffer = _buffer(sampler, steps=steps, n_step=2)
  drawn, counts = np.unique(_ids(buffer), return_counts=True)
  assert drawn.size == buffer.num_starts
  expected = 20_000 / drawn.size
  statistic = ((counts - expected) ** 2 / expected).sum()
  # Chi square: mean k, standard deviation sqrt(2 k).
  k = drawn.size - 1
  assert statistic < k + 5 * np.sqrt(2 * k)


def test_few_starts_are_found_in_a_large_ring():
  buffer = FrameReplayBuffer(make_spec(), 1, 5000, stack=4)
  games = Games(0, 1, mean_length=1000)
  for _ in range(3000):
    buffer.add_batch(games.step())
  buffer.clear()
  for _ in range(3):
    buffer.add_batch(games.step())
  assert buffer.num_starts == 2
  assert set(_ids(buffer, 1, 50).flat) == {3000, 3001}


def test_proportional_frequencies():
  alpha = 0.7
  buffer = _buffer(functools.partial(PrioritizedSampler, alpha=alpha))
  ids = np.unique(_ids(buffer))
  priorities = np.linspace(0.1, 5, ids.size)
  buffer.update_priorities(ids, priorities)
  expected = priorities**alpha / (priorities**alpha).sum() * 20_000
  drawn, counts = np.unique(_ids(buffer), return_counts=True)
  np.testing.assert_array_equal(drawn, ids)
  statistic = ((counts - expected) ** 2 / expected).sum()
  k = ids.size - 1
  assert statistic < k + 5 * np.sqrt(2 * k)


def test_importance_weights_by_hand():
  buffer = _buffer(functools.partial(PrioritizedSampler, alpha=1.0))
  ids = np.unique(_ids(buffer))
  priorities = np.arange(1.0, ids.size + 1)
  buffer.update_priorities(ids, priorities)
  _, info = buffer.sample(6, beta=0.5)
  total = priorities.sum()
  chosen = priorities[np.searchsorted(ids, info.ids.numpy())]
  np.testing.assert_allclose(info.probabilities, chosen / total, rtol=1e-6)
  # w = (N P)^-beta / max w; N and the total fall out: (p_min / p)^beta.
  expected = (chosen.min() / chosen) ** 0.5
  np.testing.assert_allclose(info.weights, expected, rtol=1e-6)
  _, info = buffer.sample_batches(3, 4, beta=1.0)
  np.testing.assert_array_equal(info.weights.numpy().max(axis=1), np.ones(3))
  _, info = buffer.sample(4, beta=0.0)
  np.testing.assert_array_equal(info.weights, np.ones(4))


def test_uniform_weights_and_probabilities():
  buffer = _buffer()
  _, info = buffer.sample(5)
  np.testing.assert_array_equal(info.weights, np.ones(5))
  expected = np.full(5, 1 / buffer.num_starts, np.float32)
  np.testing.assert_array_equal(info.probabilities, expected)


def test_new_steps_get_the_largest_priority():
  buffer = _buffer(functools.partial(PrioritizedSampler, alpha=1.0))
  ids = np.unique(_ids(buffer))
  buffer.update_priorities(ids, np.full(ids.size, 0.5))
  buffer.update_priorities(ids[-1:], np.array([8.0]))
  games = Games(9, 2, mean_length=1000)
  for _ in range(3):
    buffer.add_batch(games.step())
  _, info = buffer.sample_planes(500, 10)
  drawn, where = np.unique(info.ids, return_index=True)
  of = dict(zip(drawn, info.probabilities.numpy().reshape([-1])[where]))
  new = set(drawn) - set(ids)
  assert new >= {80, 81, 82, 83}
  assert {of[id_] for id_ in new} == {of[ids[-1]]}
  assert of[ids[-1]] == pytest.approx(16 * of[ids[-2]], rel=1e-6)


def test_zero_priority_is_small_but_seen():
  buffer = _buffer(functools.partial(PrioritizedSampler, alpha=0.5))
  ids = np.unique(_ids(buffer))
  buffer.update_priorities(ids, np.zeros(ids.size))
  assert set(_ids(buffer).flat) == set(ids)


def test_priorities_of_steps_that_left_are_passed_over():
  buffer = _buffer(PrioritizedSampler)
  ids = np.unique(_ids(buffer))
  games = Games(3, 2, mean_length=1000)
  for _ in range(30):
    buffer.add_batch(games.step())
  before = buffer.replay.sampler.state()[1]["weights"].copy()
  buffer.update_priorities(ids, np.full(ids.size, 1e6))
  after = buffer.replay.sampler.state()[1]["weights"]
  np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("sampler", _SAMPLERS)
def test_the_seed_decides(sampler):
  one, two = _buffer(sampler, seed=5), _buffer(sampler, seed=5)
  other = _buffer(sampler, seed=6)
  for _ in range(3):
    assert_same(one.sample(7), two.sample(7))
  assert (_ids(one, 1, 20) == _ids(two, 1, 20)).all()
  assert (_ids(one, 1, 20) != _ids(other, 1, 20)).any()


@pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
def test_bad_priorities(value):
  buffer = _buffer(PrioritizedSampler)
  ids = _ids(buffer, 1, 3)[0]
  with pytest.raises(UserError, match=f"got {value} at index 1"):
    buffer.update_priorities(ids, np.array([1.0, value, 1.0]))


def test_bad_ids():
  buffer = _buffer(PrioritizedSampler)
  with pytest.raises(UserError, match="got 80 at index 0"):
    buffer.update_priorities(np.array([80]), np.ones(1))
  with pytest.raises(UserError, match="must have one shape"):
    buffer.update_priorities(np.array([1, 2]), np.ones(1))
  with pytest.raises(UserError, match="pass sampler=PrioritizedSampler"):
    _buffer().update_priorities(np.array([60]), np.ones(1))


def test_bad_alpha():
  with pytest.raises(UserError, match=r"alpha must lie in \[0, 1\], got 2"):
    _buffer(functools.partial(PrioritizedSampler, alpha=2))


@pytest.mark.parametrize("sampler", _SAMPLERS)
def test_nothing_to_sample(sampler):
  buffer = _buffer(sampler, steps=3, n_step=3)
  with pytest.raises(UserError, match="none of the 6 steps .* sequence of 4"):
    buffer.sample(1)
