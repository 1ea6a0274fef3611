import pytest

from tf_mmdrl.core import errors


@pytest.mark.parametrize(
  "name, hint",
  [
    ("Gausian", "did you mean 'gaussian'"),
    ("zzzz", "known: gaussian, laplace"),
  ],
)
def test_unknown_name_offers_the_nearest(name, hint):
  error = errors.unknown_name("kernel", name, ["laplace", "gaussian"])
  assert isinstance(error, errors.UserError)
  assert f"unknown kernel {name!r}" in str(error)
  assert hint in str(error)


def test_unknown_name_lists_no_more_than_is_read():
  error = errors.unknown_name("x", "zzzz", [f"name{k:03}" for k in range(90)])
  assert str(error).endswith("name019 and 70 more")
