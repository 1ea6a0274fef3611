"""What `mmdrl ope` promises, measured: nearness, coverage and memory."""

import pathlib
import sys

import numpy as np
import pytest

_BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(_BENCHMARKS))

import ope as small  # noqa: E402
import ope_coverage  # noqa: E402
import ope_lock  # noqa: E402
import ope_memory  # noqa: E402
import ope_ranking  # noqa: E402


def test_the_walks_mean_is_that_of_its_episodes():
  """10,000 episodes of the policy itself."""
  walk = ope_coverage._play(ope_coverage.POLICY, 10_000, 0)
  returns = [
    each.rewards @ ope_coverage.GAMMA ** np.arange(len(each.rewards))
    for each in walk
  ]
  error = np.std(returns) / 100
  assert abs(np.mean(returns) - ope_coverage.exact()) < 3 * error


def test_the_locks_policy_knows_the_state_through_the_noise():
  lock = ope_lock.Lock()
  seen, actions, chances, rewards = lock.play(0.9, 2000, 0)
  assert seen.shape == (11, 2000, 30) and rewards.shape == (10, 2000, 2)
  assert set(np.round(chances.ravel(), 6)) == {0.9, round(0.1 / 9, 6)}
  through = (rewards[-1, :, 0] > 0).mean()
  assert through == pytest.approx(0.5 * 0.9**10, abs=0.03)
  assert ((rewards[:, :, 1] > 0).sum(0) <= 1).all()


def test_ranks_agree_as_spearman_has_it():
  assert ope_ranking.spearman([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
  assert ope_ranking.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
  # 1 - 6 * (1 + 1) / (4 * 15)
  assert ope_ranking.spearman([1, 2, 3, 4], [2, 1, 3, 4]) == pytest.approx(0.8)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(small.TASKS))
def test_fitted_mmd_is_far_below_the_published_rows(name):
  """The published networks made an update by each of the 100 transitions."""
  game = small.Game(small.TASKS[name])
  exact = small.truth(game, 300)
  fit = small.estimator_of("mmdqn", game)
  found = [
    small.compared(*fit(small.logged(game, 1 + seed)), exact)["w1"]
    for seed in range(4)
  ]
  print(name, found)
  published = small.PUBLISHED[name]
  wanted = min(published["QR-DQN"], published["MMDQN"])
  assert np.mean(found) < 0.5 * wanted


@pytest.mark.slow
def test_intervals_hold_the_mean_of_what_was_logged(tmp_path):
  ope_coverage.measure("weighted", tmp_path, 100)
  print(ope_coverage.table(tmp_path))
  lines = [
    line.split("|")[1:-1]
    for line in ope_coverage.table(tmp_path).splitlines()[2:]
  ]
  held = {
    name.strip(): int(share.split()[0])
    for logged, name, _, share, _ in lines
    if logged.strip() == "the policy itself"
  }
  assert len(held) == 5
  assert all(90 <= share <= 99 for share in held.values()), held


@pytest.mark.slow
def test_a_larger_data_set_takes_no_more_memory(tmp_path):
  """400 MB with a budget of 64 MB, beside 40 MB with the same."""
  found = {}
  for gigabytes in (0.04, 0.4):
    data = tmp_path / f"{gigabytes}"
    ope_memory.write(data, gigabytes)
    found[gigabytes] = ope_memory.evaluate(
      data, tmp_path / f"out_{gigabytes}", "64M"
    )
  print(found)
  assert found[0.4] - found[0.04] < 0.1  # GB
