"""Utilities of vectors of returns, and the scores that they make."""

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import JointReturnDistribution
from tf_mmdrl.policies import player, scores, utilities, utility_names

# [B = 1, A = 2, N = 2, D = 2]: balanced or not, with the same mean.
_JOINT = JointReturnDistribution(
  tf.constant([[[[0.0, 4.0], [4.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]]])
)


def product(returns):
  """Of all returns."""
  return tf.reduce_prod(returns, axis=-1)


def endless(returns):
  return tf.where(returns[..., 1] < -0.5, -np.inf, returns[..., 0])


def logarithm(returns):
  """NaN below 0."""
  return tf.reduce_sum(tf.math.log(returns), axis=-1)


def by_numpy(returns):
  """Works on what is not yet part of a graph."""
  return np.log(1 + np.square(returns)).sum(axis=-1)


def of_axis_one(returns):
  """Right for [B, D] alone."""
  return tf.reduce_sum(returns, axis=1)


def matrix(returns):
  """Not one number of a vector."""
  return returns


NO_FUNCTION = 3


@pytest.mark.parametrize(
  "text, vector, wanted",
  [
    ("sum", [2.0, 3.0], 5.0),
    ("linear:1,-2", [2.0, 3.0], -4.0),
    ("chebyshev:1,2", [2.0, 3.0], 2.0),
    ("chebyshev:1,2@1,2.75", [2.0, 3.0], 0.5),
    ("ces:0.5:1,1", [4.0, 9.0], 6.25),
    ("ces:1:2,1", [4.0, 9.0], 17 / 3),
    ("ces:0.5:1,1", [4.0, -9.0], 1.0),
    ("threshold:2,3", [2.0, 3.0], 1.0),
    ("threshold:2,3.1", [2.0, 3.0], 0.0),
    ("threshold:-inf,3", [-9.0, 3.0], 1.0),
    (f"{__name__}:product", [2.0, 3.0], 6.0),
  ],
)
def test_by_name(text, vector, wanted):
  found = utility_names.parse(text)(tf.constant([[vector]]))
  np.testing.assert_allclose(found, [[wanted]], rtol=1e-6)


def test_esr_and_ser_differ_where_balance_matters():
  utility = "chebyshev:1,1"
  esr = utility_names.parse_score(utility)(_JOINT, tf.zeros([]))
  np.testing.assert_allclose(esr, [[0.0, 2.0]])
  ser = utility_names.parse_score(utility, "ser")(_JOINT, tf.zeros([]))
  np.testing.assert_allclose(ser, [[2.0, 2.0]])
  risk = utility_names.parse_score("linear:1,0", "cvar:0.5")
  np.testing.assert_allclose(risk(_JOINT, tf.zeros([])), [[0.0, 2.0]])


def test_probability_that_all_limits_hold():
  both = utility_names.parse_score("threshold:1,1")(_JOINT, tf.zeros([]))
  np.testing.assert_allclose(both, [[0.0, 1.0]])
  # The marginals are 1/2 each: their product says 1/4 for the first action.
  one = utility_names.parse_score("threshold:1,-inf")(_JOINT, tf.zeros([]))
  np.testing.assert_allclose(one, [[0.5, 1.0]])


def test_what_was_earned_counts():
  """Observations end with what was earned, (3, 0), and the discount 0.5."""
  observation = tf.constant([[7.0, 3.0, 0.0, 0.5]])
  score = utility_names.parse_score("chebyshev:1,1", accrued=True)
  seen = score.see(_JOINT, observation)
  np.testing.assert_allclose(
    seen.values, [[[[3, 2], [5, 0]], [[4, 1], [4, 1]]]]
  )
  np.testing.assert_allclose(score(seen, tf.zeros([])), [[1.0, 1.0]])
  plain = utility_names.parse_score("chebyshev:1,1")
  assert plain.see(_JOINT, observation) is _JOINT


def test_other_scores_are_of_the_utility():
  esr = utility_names.parse_score("linear:1,0", accrued=True)
  assert esr.by(scores.Mean()) is esr
  other = esr.by(scores.Boltzmann(2.0))
  assert other.draws is scores.Draws.EACH_STEP and other.accrued
  np.testing.assert_allclose(other.logits(_JOINT), [[1.0, 1.0]])
  ser = utility_names.parse_score("sum", "ser")
  assert ser.by(scores.Mean()) is ser
  assert scores.Mean().by(scores.CVaR(0.5)) == scores.CVaR(0.5)


@pytest.mark.parametrize(
  "text, message",
  [
    ("pareto:1", "unknown utility 'pareto'"),
    ("sum:1", "unknown utility"),
    ("linear", "wants numbers"),
    ("linear:1,x", "wants numbers"),
    ("linear:1,nan", "wants numbers"),
    ("chebyshev:1,0", "above 0"),
    ("ces:0:1,1", "rho must lie in"),
    ("ces:0.5", "wants numbers"),
    ("ces:0.5,1:1,1", "wants one number, rho"),
    ("ces:0.5:1,inf", "ces's weights must be finite"),
    ("linear:inf,1", "linear's weights must be finite"),
    ("linear:1e39,1", "must be finite as float32"),
    ("chebyshev:inf,1", "chebyshev's weights must be finite"),
    ("chebyshev:1e-60,1", "above 0"),
    ("chebyshev:1,1@-inf,1", "chebyshev's reference must be finite"),
    ("threshold:inf,1", "limits .* must be finite"),
    (f"{__name__}:no_such", "no_such"),
    (f"{__name__}:NO_FUNCTION", "Callable"),
  ],
)
def test_bad_names_say_what_was_wanted(text, message):
  with pytest.raises(errors.UserError, match=message):
    utility_names.parse(text)


def leaves(returns):
  raise SystemExit(3)


def test_a_module_that_exits_is_one_line(tmp_path, monkeypatch):
  (tmp_path / "leaving_module.py").write_text("raise SystemExit(0)\n")
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(errors.UserError, match="cannot be imported: SystemExit"):
    utility_names.parse("leaving_module:anything")


@pytest.mark.parametrize("rho", ["1e-40", "0", "0.0009", "1.1"])
def test_ces_without_digits_is_refused(rho):
  with pytest.raises(errors.UserError, match=r"rho must lie in \[0.001, 1\]"):
    utility_names.parse(f"ces:{rho}:1,1")


def test_ces_near_zero_is_the_geometric_mean():
  utility = utility_names.parse("ces:0.001:1,1")
  found = utility(tf.constant([[4.0, 9.0], [1.0, 1.0]])).numpy()
  np.testing.assert_allclose(found, [6.0, 1.0], rtol=2e-3)


@pytest.mark.parametrize("criterion", ["mode", "thompson"])
def test_bad_criteria(criterion):
  with pytest.raises(errors.UserError):
    utility_names.parse_score("sum", criterion)


@pytest.mark.parametrize(
  "text, message",
  [
    ("linear:1,2,3", "weights for each of the 2 returns, got 3"),
    ("threshold:1", "limits for each of the 2 returns, got 1"),
    ("chebyshev:1,1@2", "reference for each of the 2"),
    (f"{__name__}:logarithm", "gave no finite number for the returns"),
    (f"{__name__}:endless", "gave no finite number for the returns"),
    (f"{__name__}:matrix", "one float32 for each vector"),
    (f"{__name__}:leaves", r"raised SystemExit \(3\) for vectors of 2 returns"),
    (f"{__name__}:by_numpy", "raised .*; write it in TensorFlow operations"),
    (f"{__name__}:of_axis_one", "one float32 for each vector"),
  ],
)
def test_utilities_that_do_not_fit(text, message):
  with pytest.raises(errors.UserError, match=message):
    utility_names.parse(text).check(2)


def test_utilities_that_fit():
  for text in ("sum", "linear:1,2", "ces:0.5:1,1", f"{__name__}:product"):
    utility_names.parse(text).check(2)


def test_nan_of_a_function_stops_a_policy():
  utility = utilities.Function(logarithm, "mine")
  returns = tf.constant([[[2.0, 1.0], [-1.0, 1.5]]])
  message = (
    r"^the utility mine gave no finite number for the returns"
    r" \[-1(\.0)?, 1.5\]; .*any$"
  )
  for call in (utility, tf.function(utility)):
    with pytest.raises(tf.errors.InvalidArgumentError) as said:
      call(returns)
    with pytest.raises(errors.UserError, match=message):
      utilities.raise_if_not_finite(said.value)


def test_nan_while_playing_is_one_line():
  utility = utilities.Function(logarithm, "mine")
  act = player.by_scores(lambda seen: utility(seen[:, tf.newaxis]), 1)
  play = player.ArrayPlayer(act, 1)
  for seen in ([1.0, 2.0], [2.0, -3.0]):
    step = ts.restart(np.float32([seen]), batch_size=1)
    if seen[1] > 0:
      np.testing.assert_array_equal(play(step, 0.0, 0), [0])
    else:
      with pytest.raises(errors.UserError, match=r"returns \[2, -3\]; it"):
        play(step, 0.0, 1)


def test_other_errors_of_tensorflow_stay_what_they_are():
  def act(*_):
    tf.debugging.Assert(False, ["another"])

  step = ts.restart(np.float32([[1.0]]), batch_size=1)
  with pytest.raises(tf.errors.InvalidArgumentError, match="another"):
    player.ArrayPlayer(act, 1)(step, 0.0, 0)
