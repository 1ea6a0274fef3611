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


@pytest.mark.parametrize(
  "name, hint",
  [
    ("optimizer.lr", ["optimizer.learning_rate"]),  # its initials
    ("lr", ["optimizer.learning_rate"]),
    ("learning_rate", ["optimizer.learning_rate"]),  # without its group
    ("network.learning_rate", ["optimizer.learning_rate"]),
    ("optimizer.learning_rat", ["optimizer.learning_rate"]),
    ("replay.lr", []),  # another group has no such initials
    ("xyzzy", []),
  ],
)
def test_the_nearest_settings_are_those_people_mean(name, hint):
  known = ["optimizer.learning_rate", "optimizer.epsilon", "agent.gamma"]
  assert errors.nearest(name, known)[:1] == hint
