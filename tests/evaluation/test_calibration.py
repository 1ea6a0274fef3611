"""Measures of calibration against slow loops and known distributions."""

import numpy as np
import pytest

from tf_mmdrl.evaluation import calibration
from tf_mmdrl.evaluation.calibration import Forecasts


def forecasts(particles, returns, weights=None, games=None):
  particles = np.asarray(particles, np.float64)
  if weights is None:
    weights = np.full(particles.shape, 1 / particles.shape[1])
  if games is None:
    games = np.arange(len(particles)) // 10
  return Forecasts(particles, weights, np.asarray(returns), games)


@pytest.fixture
def rng():
  return np.random.default_rng(3)


def test_scores_are_the_definition(rng):
  weights = rng.dirichlet(np.ones(7), size=5)
  some = forecasts(rng.normal(size=[5, 7]), rng.normal(size=5), weights)
  for x, w, y, found in zip(*some[:2], some.returns, calibration.crps(some)):
    to_return = np.sum(w * np.abs(x - y))
    apart = np.sum(w[:, None] * w * np.abs(x[:, None] - x))
    assert found == pytest.approx(to_return - apart / 2)


def test_energy_distance_is_the_definition(rng):
  some = forecasts(rng.normal(size=[6, 4]), rng.normal(2, 1, size=6))
  x, y = some.particles.ravel(), some.returns
  mean = lambda a, b: np.mean(np.abs(a[:, None] - b))  # noqa: E731
  wanted = 2 * mean(x, y) - mean(x, x) - mean(y, y)
  assert calibration.energy_distance(some) == pytest.approx(wanted)


def test_draws_of_the_forecast_are_calibrated(rng):
  centre = rng.normal(size=[20_000, 1])
  some = forecasts(
    centre + rng.normal(size=[20_000, 9]),
    (centre + rng.normal(size=(20_000, 1)))[:, 0],
  )
  found = calibration.measure(some)
  assert found.states == 20_000 and found.games == 2_000
  np.testing.assert_allclose(found.histogram, 0.1, atol=0.01)
  for level, share in found.coverage.items():
    assert share.point == pytest.approx(level, abs=0.01)
    assert share.low < level < share.high
  assert abs(found.bias.point) < 0.05
  # The half that the centre explains: about 1 - 1 / sqrt(2) of the score.
  assert 0.2 < found.skill.point < 0.3


def test_too_narrow_shifted_and_blind_forecasts_are_seen(rng):
  returns = rng.normal(size=5_000)
  narrow = calibration.measure(
    forecasts(0.1 * rng.normal(size=[5_000, 50]), returns)
  )
  assert narrow.coverage[0.9].point < 0.25
  assert narrow.histogram[0] > 0.3 and narrow.histogram[-1] > 0.3
  shifted = calibration.measure(
    forecasts(1 + rng.normal(size=[5_000, 50]), returns)
  )
  assert shifted.bias.low > 0.9 and shifted.histogram[0] > 0.2
  assert shifted.energy_distance > 0.1
  blind = calibration.measure(
    forecasts(np.tile(returns[:500], [5_000, 1]), returns)
  )
  assert blind.skill.point == pytest.approx(0, abs=0.02)
  perfect = calibration.measure(forecasts(returns[:, None], returns))
  assert perfect.crps.point == 0 and perfect.skill.point == 1


def test_weights_count_as_repeated_particles(rng):
  returns = rng.normal(size=40)
  twice = rng.normal(size=[40, 3])
  repeated = forecasts(twice[:, [0, 0, 1, 2]], returns)
  weighted = forecasts(twice, returns, np.tile([0.5, 0.25, 0.25], [40, 1]))
  np.testing.assert_allclose(
    calibration.crps(repeated), calibration.crps(weighted)
  )
  assert calibration.energy_distance(repeated) == pytest.approx(
    calibration.energy_distance(weighted)
  )


def test_ties_are_broken_at_random_over_the_whole_step():
  """All returns and all particles are 0, as where an agent always loses."""
  some = forecasts(np.zeros([9_000, 32]), np.zeros(9_000))
  found = calibration.measure(some)
  np.testing.assert_allclose(found.histogram, 0.1, atol=0.012)
  assert np.isnan(found.skill.point)  # nothing was to be predicted


def test_intervals_are_over_games_not_states(rng):
  """A game's states tell the same thing many times."""
  of_game = rng.normal(size=20)
  returns = np.repeat(of_game, 100)
  few = forecasts(
    rng.normal(size=[2_000, 8]), returns, games=np.repeat(np.arange(20), 100)
  )
  many = few._replace(games=np.arange(2_000))
  width = lambda one: one.bias.high - one.bias.low  # noqa: E731
  assert width(calibration.measure(few)) > 4 * width(calibration.measure(many))


def test_equal_seeds_give_equal_measures(rng):
  some = forecasts(rng.normal(size=[50, 4]), rng.normal(size=50))
  one, other = (calibration.measure(some, seed) for seed in (1, 1))
  np.testing.assert_array_equal(one.histogram, other.histogram)
  assert one._replace(histogram=0) == other._replace(histogram=0)
