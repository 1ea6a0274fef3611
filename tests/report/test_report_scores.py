"""Statistics against rliable's own and against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from rliable import library, metrics

from tf_mmdrl.report import intervals, score_statistics

_THEIRS = {
  score_statistics.mean: metrics.aggregate_mean,
  score_statistics.median: metrics.aggregate_median,
  score_statistics.iqm: metrics.aggregate_iqm,
  score_statistics.optimality_gap: metrics.aggregate_optimality_gap,
}
_MATRICES = arrays.arrays(
  np.float64,
  st.tuples(st.integers(1, 5), st.integers(1, 7)),
  elements=st.floats(-10, 10),
)


@pytest.mark.parametrize("ours", _THEIRS, ids=lambda ours: ours.__name__)
@given(matrix=_MATRICES)
def test_statistics_are_rliables(ours, matrix):
  expected = _THEIRS[ours](matrix)
  np.testing.assert_allclose(ours(matrix), expected, rtol=1e-12, atol=1e-12)
  # Of a curve: the same at every point.
  cube = np.stack([matrix, 2 * matrix], axis=-1)
  np.testing.assert_allclose(
    ours(cube), [expected, _THEIRS[ours](2 * matrix)], rtol=1e-12, atol=1e-12
  )


@pytest.mark.parametrize("ours", _THEIRS, ids=lambda ours: ours.__name__)
def test_intervals_are_rliables(ours):
  matrix = np.random.default_rng(1).normal(1, 0.5, [3, 6])
  found = intervals.estimate(ours, matrix, repetitions=300)
  np.random.seed(0)
  _, theirs = library.get_interval_estimates(
    {"": matrix}, lambda m: np.array([_THEIRS[ours](m)]), reps=300
  )
  np.testing.assert_allclose([found.low, found.high], theirs[""].ravel())
  assert found.low < found.point < found.high


def test_the_probability_of_improvement_is_rliables():
  generator = np.random.default_rng(4)
  # Whole numbers, so that there are ties.
  x, y = (generator.integers(0, 6, [seeds, 5]) * 1.0 for seeds in (4, 3))
  ours = score_statistics.probability_of_improvement
  theirs = metrics.probability_of_improvement
  assert ours(x, y) == pytest.approx(theirs(x, y))
  assert ours(x, y) == pytest.approx(1 - ours(y, x))
  found = intervals.estimate_of_two(ours, x, y)
  np.random.seed(0)
  _, bounds = library.get_interval_estimates(
    {"": (x, y)},
    lambda *drawn: np.array([theirs(*drawn)]),
    reps=intervals.REPETITIONS,
  )
  np.testing.assert_allclose([found.low, found.high], bounds[""].ravel())
  assert found.low < found.point < found.high
  assert intervals.estimate_of_two(ours, x, y[:1]).low is None


def test_profiles_are_rliables():
  matrix = np.random.default_rng(2).exponential(1, [4, 5])
  thresholds = np.linspace(0, 3, 7)
  found = intervals.profile(matrix, thresholds)
  np.random.seed(0)
  points, bounds = library.create_performance_profile({"": matrix}, thresholds)
  np.testing.assert_allclose(found.point, points[""])
  np.testing.assert_allclose([found.low, found.high], bounds[""])


def test_the_same_scores_have_the_same_interval_and_disturb_nothing():
  matrix = np.random.default_rng(3).normal(size=[3, 4])
  np.random.seed(7)
  expected = np.random.rand()
  np.random.seed(7)
  first = intervals.estimate(score_statistics.mean, matrix)
  assert np.random.rand() == expected
  assert intervals.estimate(score_statistics.mean, matrix) == first


def test_one_seed_has_no_interval():
  found = intervals.estimate(score_statistics.iqm, np.ones([1, 5]))
  assert found == (1.0, None, None)


@pytest.mark.parametrize(
  "score, baseline, percent",
  [
    (15, 10, 50),
    (5, 10, -50),
    (3.3, -1.7, 100 * 5 / 1.7),  # better, so a gain, though below 0 before
    (-9425.3, -9324, -100 * 101.3 / 9324),
    (0, 0, 0),
  ],
)
def test_percentage_improvement(score, baseline, percent):
  found = score_statistics.percentage_improvement(score, baseline)
  assert found == pytest.approx(percent)


def test_nothing_is_relative_to_0():
  assert np.isnan(score_statistics.percentage_improvement(1, 0))


def test_log_percentage_improvement():
  percents = [0, np.e - 1, 1 - np.e]
  found = score_statistics.log_percentage_improvement(percents)
  np.testing.assert_allclose(found, [0, 1, 0], atol=1e-12)
  found = score_statistics.log_percentage_improvement(percents, losses=True)
  np.testing.assert_allclose(found, [0, 1, -1], atol=1e-12)


def test_smoothing_is_a_mean_of_the_last_points():
  curve = np.array([[1.0, 2, 3, 4], [0, 0, 6, 0]])
  np.testing.assert_allclose(
    score_statistics.smooth(curve, 3), [[1, 1.5, 2, 3], [0, 0, 2, 2]]
  )
  for width in (1, 4, 9):
    plain = [
      [np.mean(row[max(0, i + 1 - width) : i + 1]) for i in range(4)]
      for row in curve
    ]
    np.testing.assert_allclose(score_statistics.smooth(curve, width), plain)


def test_the_first_of_the_best_evaluations():
  assert score_statistics.best_evaluation(np.array([1.0, 5, 5, 2])) == 1
