"""Statistics, intervals and distances of estimated laws."""

import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.offline import laws
from tf_mmdrl.offline.laws import Estimate, Law


def test_statistics_are_those_of_the_particles():
  grid = np.arange(100.0)
  law = Law(grid, np.full(100, 0.01))
  found = laws.statistics(law, [50])
  assert found["mean"] == pytest.approx(49.5)
  assert found["deviation"] == pytest.approx(grid.std())
  assert found["quantile_0.05"] == 4 and found["quantile_0.5"] == 49
  assert found["cvar"] == pytest.approx(2.0)  # of 0, 1, 2, 3, 4
  assert found["below_50"] == pytest.approx(0.5)


def test_the_border_of_cvar_counts_in_part():
  law = Law(np.array([0.0, 10.0]), np.array([0.02, 0.98]))
  assert laws.statistics(law)["cvar"] == pytest.approx(6.0)  # (2 0 + 3 10) / 5


def test_signed_masses_become_a_distribution():
  law = Law(np.arange(4.0), np.array([0.5, -0.2, 0.9, -0.2])).proper()
  np.testing.assert_allclose(law.probabilities, [0.5, 0, 0.5, 0])
  law = Law(np.arange(3.0), np.array([0.2, 0.2, 0.1])).proper()
  np.testing.assert_allclose(law.probabilities, [0.2, 0.2, 0.6])


def test_spreading_keeps_means_and_rows():
  rng = np.random.default_rng(0)
  rows, values = rng.integers(3, size=50), rng.uniform(-1, 1, 50)
  weights = rng.normal(size=50)
  grid = laws.make_grid(-1, 1, 3)
  mass = laws.spread(rows, values, weights, grid, 3)
  for row in range(3):
    here = rows == row
    assert mass[row].sum() == pytest.approx(weights[here].sum())
    assert mass[row] @ grid == pytest.approx(weights[here] @ values[here])


def test_distances_of_two_points():
  values, signed = np.array([0.0, 3.0]), np.array([1.0, -1.0])
  assert laws.line_distances(values, signed) == (3.0, 6.0)


def test_intervals_cover_the_mean_of_episodes():
  """95 % intervals of 100 data sets of 60 episodes, whose law is known."""
  covered = 0
  for seed in range(100):
    returns = np.random.default_rng(seed).exponential(size=60)
    grid = laws.make_grid(returns.min(), returns.max(), 60)
    mass = laws.spread(np.arange(60), returns, np.ones(60), grid, 60)
    counts = laws.draws(60, 200, seed)
    found = laws.intervals(Estimate("", grid, mass), counts)["mean"]
    assert found.point == pytest.approx(returns.mean())
    covered += found.low <= 1.0 <= found.high
  assert 90 <= covered <= 99


def test_differences_are_paired():
  """What all episodes share cancels, though each estimate is unsure."""
  rng = np.random.default_rng(0)
  returns = rng.normal(size=200) * 10
  grid = laws.make_grid(returns.min(), returns.max() + 1, 200)
  one, other = (
    Estimate(
      "", grid, laws.spread(np.arange(200), part, np.ones(200), grid, 200)
    )
    for part in (returns + 1, returns)
  )
  counts = laws.draws(200, 200, 0)
  found = laws.difference(one, other, counts, "mean")
  assert found.point == pytest.approx(1) and found.high - found.low < 1e-6
  alone = laws.intervals(one, counts)["mean"]
  assert alone.high - alone.low > 1


def test_returns_at_a_threshold_are_not_below_it():
  returns = np.float32([0.0, 0.7, 0.7, 1.0, 1.0])
  thresholds = [0.0, 0.7, 1.0, 9.0]
  grid = laws.make_grid(0, 1, 5, thresholds)
  assert (np.diff(grid) > 0).all()
  mass = laws.spread(np.arange(5), returns, np.ones(5), grid, 5)
  found = laws.statistics(Estimate("", grid, mass).law(), thresholds)
  assert found["mean"] == pytest.approx(returns.mean())
  below = [found[f"below_{c:g}"] for c in thresholds]
  # 0.7 is a little less in float32, of which a little counts.
  np.testing.assert_allclose(below, [0, 0.2, 0.6, 1], atol=1e-3)


def test_returns_below_a_threshold_are_below_it():
  returns = np.linspace(0, 1, 100_001)
  grid = laws.make_grid(0, 1, 1, [0.3])
  mass = laws.spread(np.zeros(100_001, int), returns, returns * 0 + 1, grid, 1)
  law = Estimate("", grid, mass, is_normalised=True).law()
  found = laws.statistics(law, [0.3])
  assert found["below_0.3"] == pytest.approx(0.3, abs=5e-5)


def test_draws_without_any_weight_are_left_out():
  grid = np.array([0.0, 1.0])
  mass = np.array([[0.0, 1.0], [0.0, 0.0]])
  counts = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
  estimate = Estimate("", grid, mass, is_normalised=True)
  found = laws.statistics(estimate.law(counts), [0.5])
  for values in found.values():
    np.testing.assert_array_equal(np.isnan(values), [False, False, True])
  assert laws.intervals(estimate, counts)["mean"] == (1.0, 1.0, 1.0)


def test_unknown_statistics_are_refused():
  with pytest.raises(errors.UserError, match="unknown statistic 'meen'"):
    laws.check_statistic("meen")


def test_few_fits_have_students_quantiles():
  for freedom, wanted in ((1, 12.706), (4, 2.776), (5, 2.571), (19, 2.093)):
    assert laws.student(freedom) == pytest.approx(wanted, rel=2e-3)


def test_few_episodes_have_wider_intervals():
  """Phi(-t sqrt(n / (n - 1))), with t(19) = 2.093 and t(59) = 2.001."""
  assert laws.tail_of(20) == pytest.approx(0.01587, rel=1e-2)
  assert laws.tail_of(60) == pytest.approx(0.02181, rel=1e-2)
  assert laws.tail_of(10**6) == pytest.approx(0.025, rel=1e-3)
  assert 0 <= laws.tail_of(1.3) < 1e-9
