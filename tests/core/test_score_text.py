import math

import pytest

from tf_mmdrl.core import score_text


@pytest.mark.parametrize(
  "value, text",
  [
    (475, "475.00"),
    (-8.556, "-8.56"),
    (0.0, "0.00"),
    (0.0911, "0.09"),
    (1234567.891, "1234567.89"),
    (0.0123456, "0.01235"),
    (-0.0004, "-0.0004"),
    (1e37, "1e+37"),
    (12345678.9, "1.235e+07"),
    (math.nan, "nan"),
    (math.inf, "inf"),
    (None, "-"),
  ],
)
def test_scores_of_any_size_are_short_and_tell_something(value, text):
  assert score_text.number(value) == text


def test_an_error_is_written_as_its_score_is():
  assert score_text.with_error(5, 0.004) == "5.00 +- 0.004 (standard error)"
