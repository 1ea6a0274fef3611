import dataclasses

import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.tabular import experiment

_SMALL = experiment.Settings(
  lengths=(1, 2, 4),
  seeds=3,
  particles=5,
  iterations=2,
  episodes_per_iteration=5,
  rollouts=50,
)


def _methods(settings, *names):
  return {name: experiment.paper_method(name, settings) for name in names}


def _rows(settings, *names):
  return experiment.run(settings, _methods(settings, *names))


def test_rows_and_the_degenerate_chain():
  shares = []
  methods = _methods(_SMALL, "qrdrl", "cdrl")
  rows = experiment.run(_SMALL, methods, lambda share, _: shares.append(share))
  assert [(r.K, r.method, r.moment) for r in rows] == [
    (length, method, moment)
    for length in (1, 2, 4)
    for method in ("qrdrl", "cdrl")
    for moment in range(1, 7)
  ]
  for row in rows:
    assert row.ci_low <= row.mean <= row.ci_high
    if row.K == 1:
      assert (row.mean, row.monte_carlo, row.exact) == (0, 0, 0)
  assert shares == sorted(shares) and shares[-1] == 1


def test_a_length_does_not_depend_on_the_others():
  alone = dataclasses.replace(_SMALL, lengths=(4,))
  assert _rows(alone, "qrdrl") == [
    row for row in _rows(_SMALL, "qrdrl") if row.K == 4
  ]


def test_interval_is_students():
  # t at 97.5 % with 29 degrees of freedom is 2.0452.
  runs = np.random.default_rng(0).normal(size=[30, 1])
  expected = 2.0452296 * runs.std(ddof=1) / 30**0.5
  np.testing.assert_allclose(experiment._half_interval(runs), [expected])
  assert np.isnan(experiment._half_interval(runs[:1])).all()


def test_clocks():
  episode = np.array([0, 0, 1, 2, 2, 3])
  np.testing.assert_array_equal(
    experiment.count_steps(episode, 2), [1, 2, 3, 4, 5, 6]
  )
  np.testing.assert_array_equal(
    experiment.count_episodes(episode, 2), [1, 1, 2, 3, 3, 4]
  )
  np.testing.assert_array_equal(
    experiment.count_iterations(episode, 2), [1, 1, 1, 2, 2, 2]
  )


@pytest.mark.parametrize(
  "name", ["gaussian-mmdrl", "unrectified-mmdrl", "qrdrl", "cdrl"]
)
def test_the_mean_is_learnt(name):
  settings = experiment.Settings(lengths=(3,), seeds=8, iterations=5)
  mean = _rows(settings, name)[0]
  assert mean.method == name
  # It began at -1; 0.1 is for the bias that a finite learning rate leaves.
  assert abs(mean.mean - mean.exact) < 0.1 + (mean.ci_high - mean.mean)


@pytest.mark.slow
def test_gaussian_mmdrl_keeps_the_even_moments_of_long_chains():
  # docs/tabular.md: of the odd ones only the comparison with the unrectified
  # kernel reproduces.
  settings = experiment.Settings(lengths=(10, 12, 15), rollouts=10)
  rows = _rows(settings, "gaussian-mmdrl", "unrectified-mmdrl", "qrdrl")
  error = {(r.K, r.method, r.moment): abs(r.mean - r.exact) for r in rows}
  for length in settings.lengths:
    for moment in (4, 5, 6):
      ours = error[length, "gaussian-mmdrl", moment]
      assert ours < error[length, "unrectified-mmdrl", moment]
      assert moment == 5 or ours < error[length, "qrdrl", moment]


@pytest.mark.parametrize(
  "change, message",
  [
    ({"lengths": (0,)}, "K must be at least 1, got 0"),
    ({"lengths": ()}, "at least one chain length"),
    ({"particles": 0}, "particles must be at least 1, got 0"),
    ({"seeds": 0}, "seeds must be at least 1"),
    ({"gamma": -0.1}, "gamma must lie in"),
    ({"deviation": -1.0}, "must not be negative"),
  ],
)
def test_bad_settings(change, message):
  with pytest.raises(errors.UserError, match=message):
    dataclasses.replace(_SMALL, **change)


def test_bad_methods():
  with pytest.raises(errors.UserError, match="did you mean 'qrdrl'"):
    experiment.paper_method("qrdl", _SMALL)
  one = dataclasses.replace(_SMALL, particles=1)
  with pytest.raises(errors.UserError, match="at least 2 atoms, got 1"):
    experiment.paper_method("cdrl", one)
