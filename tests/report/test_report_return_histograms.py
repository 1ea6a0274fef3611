"""Pictures of return distributions."""

import numpy as np
import pytest

from tf_mmdrl.report import return_histograms


def moment(generator, *, weights=None, actions=3, action=1):
  particles = generator.normal(size=[actions, 40])
  if weights is None:
    weights = np.full([actions, 40], 1 / 40)
  picture = generator.integers(0, 255, [84, 84]).astype(np.uint8)
  return return_histograms.Moment(
    picture, particles, weights, action, score=2.0
  )


@pytest.fixture
def generator():
  return np.random.default_rng(0)


def test_histograms_have_17_bins_and_all_of_the_probability(generator):
  one = moment(generator)
  edges = np.linspace(one.particles.min(), one.particles.max() + 1e-6, 18)
  shares = return_histograms._shares(one, edges)
  assert (
    shares.shape == (3, return_histograms.BINS) and return_histograms.BINS == 17
  )
  np.testing.assert_allclose(shares.sum(axis=-1), 1)


def test_weights_count(generator):
  weights = np.zeros([3, 40])
  weights[:, 7] = 1
  one = moment(generator, weights=weights)
  edges = np.linspace(one.particles.min(), one.particles.max() + 1e-6, 18)
  shares = return_histograms._shares(one, edges)
  where = np.digitize(one.particles[:, 7], edges) - 1
  np.testing.assert_array_equal(shares.argmax(axis=-1), where)
  np.testing.assert_array_equal(shares.max(axis=-1), 1)


def test_frames_stand_below_each_other(generator):
  moments = [moment(generator) for _ in range(5)]
  draw = return_histograms.drawer(moments, ["a", "b", "c"])
  one, three = draw(moments[:1]), draw(return_histograms.consecutive(moments))
  assert one.dtype == np.uint8 and one.shape[2] == 3
  assert three.shape == (3 * one.shape[0], *one.shape[1:])
  again = draw(moments[:1])
  np.testing.assert_array_equal(one, again)


def test_the_action_taken_is_shown_in_its_own_colour(generator):
  one = moment(generator, action=0)
  draw = return_histograms.drawer([one], ["a", "b", "c"])
  other = draw([one._replace(action=2)])
  assert not np.array_equal(draw([one]), other)


@pytest.mark.parametrize(
  "length, first", [(1, 0), (2, 0), (3, 0), (4, 1), (300, 149)]
)
def test_three_moments_from_the_middle(length, first):
  found = return_histograms.consecutive(list(range(length)))
  assert found == list(range(first, min(first + 3, length)))


def test_a_point_mass_can_be_drawn(generator):
  """A network that has learnt nothing gives every action one value."""
  flat = moment(generator)._replace(particles=np.zeros([3, 40]))
  image = return_histograms.drawer([flat], ["a", "b", "c"])([flat])
  assert image.std() > 0


@pytest.mark.parametrize("actions", [1, 3, 18])
def test_joint_returns_are_scatter_plots(generator, actions):
  names = [f"action {index}" for index in range(actions)]
  given = moment(generator, actions=actions, action=0)
  joint = given._replace(particles=generator.normal(size=[actions, 40, 3]))
  draw = return_histograms.drawer([joint], names)
  image = draw([joint])
  # The third return is not drawn, the second is.
  other = joint.particles.copy()
  other[..., 2] = 0
  np.testing.assert_array_equal(image, draw([joint._replace(particles=other)]))
  other[..., 1] *= 0.5
  changed = draw([joint._replace(particles=other)])
  assert changed.shape == image.shape and not np.array_equal(changed, image)
  if actions > 1:
    assert not np.array_equal(image, draw([joint._replace(action=1)]))


def test_a_joint_point_mass_can_be_drawn(generator):
  flat = moment(generator)._replace(particles=np.zeros([3, 40, 2]))
  image = return_histograms.drawer([flat], ["a", "b", "c"])([flat])
  assert image.std() > 0
