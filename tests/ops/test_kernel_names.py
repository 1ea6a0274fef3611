import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import kernel_names, kernels


@pytest.mark.parametrize(
  "text, kernel",
  [
    ("gaussian:8", kernels.gaussian(8.0)),
    ("gaussian:1e+1", kernels.gaussian(10.0)),
    ("gaussian_mixture:8,10,12", kernels.gaussian_mixture([8, 10, 12])),
    ("gaussian_mixture:1..10", kernels.gaussian_mixture()),
    ("gaussian_geometric", kernels.geometric_mixture(-8, 8)),
    ("gaussian_geometric:-8..8", kernels.geometric_mixture()),
    ("gaussian_geometric: -2 .. 3 ", kernels.geometric_mixture(-2, 3)),
    (
      "gaussian_geometric + 2*gaussian_geometric:0..1",
      kernels.weighted_sum(
        [kernels.geometric_mixture(), kernels.geometric_mixture(0, 1)],
        [1.0, 2.0],
      ),
    ),
    ("unrectified:1.5", kernels.unrectified(1.5)),
    ("laplace:2", kernels.laplace(2.0)),
    ("multiquadric:3", kernels.multiquadric(3.0)),
    ("exp_prod:2", kernels.exp_prod(2.0)),
    (
      "0.5*gaussian:1 + unrectified:1",
      kernels.weighted_sum(
        [kernels.gaussian(1.0), kernels.unrectified(1.0)], [0.5, 1.0]
      ),
    ),
    ("2*laplace:1", kernels.weighted_sum([kernels.laplace(1.0)], [2.0])),
  ],
)
def test_names(text, kernel):
  assert kernel_names.parse(text) == kernel


@pytest.mark.parametrize(
  "text, message",
  [
    ("gausian:8", "did you mean 'gaussian'"),
    ("gaussian", "wants its parameter after a colon.*gaussian:1"),
    ("gaussian:", "wants its parameter"),
    ("gaussian:wide", "wants a number where 'wide' stands"),
    ("gaussian:-8", "positive and finite, got -8.0"),
    ("gaussian_mixture:8,,12", "wants a number where '' stands"),
    ("gaussian_mixture:3..1", "at least one value"),
    ("gaussian_geometric:", "two whole exponents of two.*-8..8"),
    ("gaussian_geometric:8", "two whole exponents of two"),
    ("gaussian_geometric:-8..8.5", "two whole exponents of two"),
    ("gaussian_geometric:8..-8", r"must go up, got 8\.\.-8"),
    ("unrectified:3", r"alpha must lie in \(0, 2\]"),
    ("-1*gaussian:1", "non-negative"),
    ("x*gaussian:1", "wants a number where 'x' stands"),
    ("gaussian:1+", "unknown kernel ''"),
    ("", "unknown kernel ''"),
  ],
)
def test_bad_names_say_what_was_wanted(text, message):
  with pytest.raises(errors.UserError, match=message):
    kernel_names.parse(text)


def test_rules_by_name():
  x = ReturnDistribution(tf.constant([[0.0, 1.0, 3.0]]))
  none = ReturnDistribution(tf.zeros([1, 0]))
  median = kernel_names.parse_rule("gaussian_median", 10)(x, none, None)
  # Squared distances 1, 4 and 9: twice their median is 8.
  np.testing.assert_allclose(median.bandwidths, [[8.0]], rtol=1e-5)
  annealed = kernel_names.parse_rule("gaussian_annealed:10->1", 4)
  for step, h in ((0, 10.0), (2, 10**0.5), (4, 1.0), (9, 1.0)):
    made = annealed(x, x, tf.constant(step, tf.int64))
    np.testing.assert_allclose(made.bandwidths, [h], rtol=1e-5)
  assert kernel_names.parse_rule("laplace:2", 4) == kernels.laplace(2.0)


@pytest.mark.parametrize(
  "text, message",
  [
    ("gaussian_annealed:10", "two bandwidths"),
    ("gaussian_annealed:0->1", "must be positive"),
    ("gaussian_median:x", "wants a number"),
    ("gaussian_median+laplace:1", "alone"),
    ("2*gaussian_annealed:10->1", "alone"),
  ],
)
def test_bad_rules_say_what_was_wanted(text, message):
  with pytest.raises(errors.UserError, match=message):
    kernel_names.parse_rule(text, 10)
