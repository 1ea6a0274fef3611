"""Importance-weighted laws, exact where every path is counted exactly."""

import itertools

import finite
import numpy as np
import pytest

from tf_mmdrl.offline import importance, laws
from tf_mmdrl.offline.dataset import Description, Episode

_GAMMA, _STEPS = 0.5, 3
_BEHAVIOUR = np.array([[0.7, 0.3], [0.4, 0.6]])
_POLICY = np.array([[0.2, 0.8], [0.9, 0.1]])
_REWARDS = np.array([[1.0, -2.0], [0.5, 3.0]])


def _paths():
  """Every path of three steps from state 0: state 1 after action 1, else 0.

  The last step ends the episode, or cuts it off where its state is 1.
  """
  one_hot = np.eye(2, dtype=np.float32)
  episodes, behaviour, policy, returns = [], [], [], []
  for actions in itertools.product([0, 1], repeat=_STEPS):
    states = [0, *actions]
    pairs = list(zip(states, actions))
    rewards = np.float32([_REWARDS[pair] for pair in pairs])
    chances = np.array([_BEHAVIOUR[pair] for pair in pairs])
    episodes.append(
      Episode(
        one_hot[states[:-1]],
        np.array(actions),
        rewards,
        one_hot[states[1:]],
        True,
        chances,
      )
    )
    behaviour.append(chances.prod())
    policy.append(np.prod([_POLICY[pair] for pair in pairs]))
    returns.append(importance.partial_returns(rewards, _GAMMA)[-1])
  data = finite.Memory(episodes, Description((2,), np.dtype(np.float32), 2))
  return data, np.array(behaviour), np.array(policy), np.array(returns)


def _probabilities(observations):
  return _POLICY[np.argmax(observations, axis=1)]


def _wrong_model(observations):
  """Return distributions that have nothing to do with the truth."""
  rng = np.random.default_rng(0)
  table = rng.normal(size=[2, 2, 3])
  values = table[np.argmax(observations, axis=1)]
  return values, np.full(values.shape, 1 / 3)


@pytest.mark.parametrize(
  "name", ["ordinary", "per_decision", "self_normalised", "doubly_robust"]
)
def test_the_expectation_is_the_policys_law(name):
  """With every path counted by its probability, unbiased means exact."""
  data, behaviour, policy, returns = _paths()
  grid = laws.make_grid(-8, 8, 8)
  found = importance.paths(data, _probabilities, _GAMMA)
  made = importance.estimates(found, grid, clip=1e9)
  made.append(
    importance.doubly_robust(
      data, _probabilities, _wrong_model, found, _GAMMA, grid
    )
  )
  (estimate,) = (each for each in made if each.name == name)
  exact = laws.spread(np.zeros(8, int), returns, policy, grid, 1)[0]
  np.testing.assert_allclose(
    estimate.law(behaviour).probabilities, exact, atol=1e-12
  )


def test_clipping_and_the_effective_size():
  data, behaviour, policy, _ = _paths()
  found = importance.paths(data, _probabilities, _GAMMA)
  grid = laws.make_grid(-8, 8, 8)
  ordinary, *_, clipped = importance.estimates(found, grid, clip=2.0)
  weights = policy / behaviour
  np.testing.assert_allclose(np.exp(ordinary.log_weights), weights)
  np.testing.assert_allclose(
    np.exp(clipped.log_weights), np.minimum(weights, 2.0)
  )
  assert ordinary.effective_size == pytest.approx(
    weights.sum() ** 2 / (weights**2).sum()
  )


@pytest.mark.parametrize("log", [-1000.0, 0.0, 1000.0])
def test_weights_beyond_all_numbers_count_by_their_ratios(log):
  found = [
    importance.Path(np.array([0.0, reward]), np.array([log + more]))
    for reward, more in ((1.0, np.log(3)), (5.0, 0.0), (9.0, -np.inf))
  ]
  grid = laws.make_grid(0, 9, 3)
  made = importance.estimates(found, grid, clip=1e9)
  assert made[0].effective_size == pytest.approx(4**2 / (3**2 + 1))
  mean = laws.statistics(made[2].law())["mean"]
  assert mean == pytest.approx((3 * 1 + 5) / 4)


def test_weights_of_zero_give_no_law():
  found = [importance.Path(np.array([0.0, 1.0]), np.array([-np.inf]))] * 3
  grid = laws.make_grid(0, 1, 3)
  counts = laws.draws(3, 10, 0)
  for estimate in importance.estimates(found, grid, clip=2.0):
    assert estimate.effective_size == 0.0
    if estimate.name != importance.PER_DECISION:
      for interval in laws.intervals(estimate, counts, [-1, 0.5]).values():
        assert np.isnan(interval.point) and interval.low is None


def test_on_policy_weights_are_one():
  data, behaviour, _, returns = _paths()
  found = importance.paths(
    data, lambda seen: _BEHAVIOUR[np.argmax(seen, axis=1)], _GAMMA
  )
  for path in found:
    np.testing.assert_allclose(path.weights, 1.0)
  grid = laws.make_grid(-8, 8, 8)
  for estimate in importance.estimates(found, grid, clip=10.0):
    mean = estimate.law(behaviour).probabilities @ grid
    assert mean == pytest.approx(behaviour @ returns)
