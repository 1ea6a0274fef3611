import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.tabular import chain

_ROLLOUTS = 1_000_000


def _errors_in_standard_errors(returns, exact):
  """[order] (Monte Carlo - exact) / standard error, by the delta method."""
  mean, result = exact[0], []
  for order, value in enumerate(exact, 1):
    if order == 1:
      influence = returns - mean
    else:
      # The sample's own mean is subtracted: d/dmean of the n-th central moment
      # is -n times the (n - 1)-th, which is 0 for n = 2.
      lower = exact[order - 2] if order > 2 else 0.0
      centred = returns - mean
      influence = centred**order - value - order * lower * centred
    result.append(influence.mean() / (influence.std() / returns.size**0.5))
  return np.array(result)


@pytest.mark.parametrize("length", range(2, 16))
def test_exact_moments_agree_with_a_million_rollouts(length):
  it = chain.Chain(length)
  generator = np.random.default_rng([17, length])
  returns = chain.rollouts(it, _ROLLOUTS, generator)
  deviations = _errors_in_standard_errors(returns, it.exact_moments(6))
  # 84 comparisons of standard normals in all: P(any above 4) < 1 %.
  assert np.abs(deviations).max() < 4, deviations


def test_chain_of_length_one_has_no_future():
  it = chain.Chain(1)
  np.testing.assert_array_equal(it.exact_moments(6), np.zeros(6))
  generator = np.random.default_rng(0)
  np.testing.assert_array_equal(chain.rollouts(it, 3, generator), np.zeros(3))
  with pytest.raises(errors.UserError, match="no transitions"):
    it.process()


@pytest.mark.parametrize("length", [2, 3, 7])
def test_episodes_are_a_walk_on_the_chain(length):
  it = chain.Chain(length, forward=0.6)
  played = chain.episodes(it, 200, np.random.default_rng(length))
  state, ended = 0, 0
  for i in range(played.state.size):
    assert played.state[i] == state
    assert played.episode[i] == ended
    moved = played.ends[i] or played.successor[i] == state + 1
    assert played.reward[i] == int(played.ends[i]) - int(not moved)
    assert played.ends[i] == (moved and state == length - 2)
    if not moved or played.ends[i]:
      assert played.successor[i] == 0
    ended += played.ends[i]
    state = played.successor[i]
  assert ended == 200 and played.ends[-1]


def test_episodes_have_the_processs_returns():
  it = chain.Chain(6)
  played = chain.episodes(it, 20_000, np.random.default_rng(3))
  returns, total, discount = [], 0.0, 1.0
  for reward, ends in zip(played.reward, played.ends):
    total, discount = total + discount * reward, discount * it.gamma
    if ends:
      returns.append(total)
      total, discount = 0.0, 1.0
  deviations = _errors_in_standard_errors(
    np.array(returns), it.exact_moments(4)
  )
  assert np.abs(deviations).max() < 4, deviations


def test_moments_at_gamma_one_and_zero():
  # Without discount the mean is 1 less the failures before 4 in a row.
  q = 0.9**4
  np.testing.assert_allclose(
    chain.Chain(5, gamma=1.0).exact_moments(1), [1 - (1 - q) / q]
  )
  np.testing.assert_allclose(
    chain.Chain(2, gamma=0.0).exact_moments(2), [0.8, 0.36]
  )


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: chain.Chain(0), "K must be at least 1, got 0"),
    (lambda: chain.Chain(5, gamma=1.1), r"gamma must lie in \[0, 1\], got 1.1"),
    (lambda: chain.Chain(5, gamma=float("nan")), "got nan"),
  ],
)
def test_bad_chains(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
