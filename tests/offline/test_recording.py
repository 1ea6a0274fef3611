"""`mmdrl record`: what policies do, with the probabilities of their actions."""

import re

import numpy as np
import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.offline import dataset, opening, recording, target_policies
from tf_mmdrl.train import config as configs

_FUNCTION = "offline_fixtures:mostly_right"


def _record(path, *arguments):
  options = ["--env", "CartPole-v1", "-o", str(path), "--seed", "3"]
  return main.main(["record", *arguments, *options])


def test_policies_take_turns_and_their_probabilities_are_logged(
  tmp_path, capsys
):
  where = tmp_path / "data"
  assert not _record(where, _FUNCTION, "random", "--episodes", "20")
  assert " 20 episodes" in " ".join(capsys.readouterr().out.split())
  data = opening.open_dataset(str(where))
  assert data.description.environment == "CartPole-v1"
  episodes = list(data.read(range(20)))
  chances = [set(np.round(episode.behaviour, 6)) for episode in episodes]
  assert sum(found <= {0.25, 0.75} for found in chances) == 10
  assert sum(found == {0.5} for found in chances) == 10
  for episode in episodes:
    if 0.5 not in episode.behaviour:
      wanted = np.where(episode.actions == 1, 0.75, 0.25)
      np.testing.assert_allclose(episode.behaviour, wanted)
    np.testing.assert_array_equal(
      episode.observations[1:], episode.next_observations[:-1]
    )
    assert episode.terminated and (episode.rewards == 1).all()
  right = np.concatenate([e.actions[e.behaviour != 0.5] for e in episodes])
  assert abs(right.mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / len(right))


def test_steps_are_counted_and_games_cut_off_there(tmp_path):
  where = tmp_path / "data"
  assert not _record(where, "random", "--steps", "200")
  data = opening.open_dataset(str(where))
  assert 200 <= data.num_steps < 240
  assert dataset.summarize(data).num_terminated < len(data)


@pytest.mark.parametrize("amount", [dict(episodes=4), dict(steps=60)])
def test_how_much_is_recorded_is_told(tmp_path, amount):
  config = configs.Config().replace(
    environment=dict(name="CartPole-v1"), evaluation=dict(num_envs=2)
  )
  told = []
  recording.record(
    [None], config, tmp_path / "data", **amount, about={}, progress=told.append
  )
  assert told == sorted(told) and told[0] < 0.5 and told[-1] >= 1


def test_the_same_seed_gives_the_same_data(tmp_path):
  for name in "ab":
    assert not _record(tmp_path / name, "random", "--episodes", "4")
  first, second = (
    opening.open_dataset(str(tmp_path / name)).read(range(4)) for name in "ab"
  )
  for one, other in zip(first, second, strict=True):
    np.testing.assert_array_equal(one.observations, other.observations)


def test_nothing_is_overwritten_or_left_half_made(tmp_path, capsys):
  (tmp_path / "data").mkdir()
  assert _record(tmp_path / "data", "random") == main.EXIT_BAD_INPUT
  assert "exists already" in capsys.readouterr().err
  with pytest.raises(errors.UserError, match="must give probabilities"):
    target_policies.open_policy(_FUNCTION, 3).probabilities(np.zeros([2, 4]))
  assert _record(tmp_path / "new", "nowhere") == main.EXIT_BAD_INPUT
  assert "there is no policy 'nowhere'" in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("size", [8, 32])  # at the end, and on the way
def test_a_data_set_that_does_not_fit_is_not_there(small_disk, capfd, size):
  """HDF5 would end the process; the line is all that is said."""
  disk = small_disk(size)
  where = disk / "new" / "data"
  assert _record(where, "random", "--episodes", "8") == main.EXIT_BAD_INPUT
  shown = capfd.readouterr().err.strip()
  wanted = (
    r"cannot write .*: No space left.*; it needs (more than the )?[\d.]+ [kM]B"
  )
  assert re.search(wanted, shown) and "\n" not in shown
  assert not list(disk.iterdir())


def test_draws_follow_probabilities():
  probabilities = np.tile([[0.2, 0.0, 0.8]], [1000, 1])
  actions = target_policies.draw(probabilities, np.arange(1000) / 1000)
  assert np.bincount(actions, minlength=3).tolist() == [200, 0, 800]
