import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.ops import kernel_names, kernels


@pytest.mark.parametrize(
  "text, kernel",
  [
    ("gaussian:8", kernels.gaussian(8.0)),
    ("gaussian:1e+1", kernels.gaussian(10.0)),
    ("gaussian_mixture:8,10,12", kernels.gaussian_mixture([8, 10, 12])),
    ("gaussian_mixture:1..10", kernels.gaussian_mixture()),
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
