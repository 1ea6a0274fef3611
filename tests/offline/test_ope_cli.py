"""`mmdrl ope` as a user runs it: files, warnings, refusals, kills."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import offline_fixtures
import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.offline.dataset import Description, Episode

_POLICY = "offline_fixtures:mostly_right"
_FAST = [
  *("--gamma", "0.5", "--updates", "40", "--period", "20", "--seed", "1"),
  *("--set", "system.xla=off", "--set", "network.num_particles=10"),
]


def _data(path, count=12, behaviour=True, action=None):
  """Episodes of two actions, where action 1 pays 1 and the other 0."""
  rng = np.random.default_rng(0)
  made = []
  for _ in range(count):
    actions = rng.integers(2, size=3) if action is None else np.full(3, action)
    seen = rng.normal(size=[4, 4]).astype(np.float32)
    made.append(
      Episode(
        seen[:-1],
        actions,
        actions.astype(np.float32),
        seen[1:],
        True,
        np.full(3, 0.5) if behaviour else None,
      )
    )
  description = Description((4,), np.dtype(np.float32), 2)
  return offline_fixtures.write(path, made, description)


def _ope(data, out, *arguments):
  return main.main(
    ["ope", "--data", str(data), "-o", str(out), *_FAST, *arguments]
  )


def test_policies_are_evaluated_ranked_and_written(tmp_path, capsys):
  data, out = _data(tmp_path / "data"), tmp_path / "out"
  arguments = ["--policies", "random", _POLICY, "--below", "1", "--refits", "2"]
  assert not _ope(data, out, *arguments, "--by", "cvar")
  shown = capsys.readouterr().out
  assert "Policies by CVaR 5 %" in shown and "P(G < 1)" in shown
  content = json.loads((out / "ope.json").read_text())
  names = [each["policy"] for each in content["policies"]]
  assert sorted(names) == sorted(["random", _POLICY])
  by = [each["statistics"]["fitted"]["cvar"][0] for each in content["policies"]]
  assert by == sorted(by, reverse=True)
  for each in content["policies"]:
    found = each["statistics"]
    assert set(found) == {
      *("fitted", "neighbours", "doubly_robust", "ordinary"),
      *("per_decision", "self_normalised", "clipped"),
    }
    for estimator in ("fitted", "ordinary"):
      point, low, high = found[estimator]["mean"]
      assert low <= point <= high
    wanted = 1.75 * (0.5 if each["policy"] == "random" else 0.75)
    point, low, high = found["ordinary"]["mean"]
    assert low < wanted < high
    assert 0 < each["effective_sample_size"] <= 12
    law = np.array(each["laws"]["fitted"]["probabilities"])
    assert law.min() >= 0 and law.sum() == pytest.approx(1)
  page = (out / "report.html").read_text()
  assert "<svg" in page and _POLICY in page
  assert "## Policies by" in (out / "ope.md").read_text()


def test_warnings_that_matter(tmp_path):
  data = _data(tmp_path / "data", count=4, behaviour=False, action=1)
  assert not _ope(data, tmp_path / "out", "--policy", _POLICY)
  content = json.loads((tmp_path / "out" / "ope.json").read_text())
  warnings = " ".join(content["policies"][0]["warnings"])
  for words in (
    "never takes action 0, which the policy takes in 25.0%",
    "no behaviour probabilities",
    "had not stopped falling after 40 updates",
    "none is held out",
  ):
    assert words in warnings


def test_a_policy_that_no_episode_fits_leaves_json_whole(
  tmp_path, capsys, monkeypatch
):
  """Weights of 0 give dashes, null and a warning; differences no interval."""
  monkeypatch.setenv("COLUMNS", "80")
  data, out = _data(tmp_path / "data", count=4, action=1), tmp_path / "out"
  policies = ["--policies", "offline_fixtures:left", "random"]
  chosen = ["--estimators", "fitted", "self_normalised", "ordinary"]
  assert not _ope(data, out, *policies, *chosen, "--below", "1.75")
  shown = capsys.readouterr().out
  assert "are worth 0.0 of 4 episodes" in " ".join(shown.split())
  assert "Differences are fitted, without intervals." in shown
  # The table is too wide for a terminal: each row has lines of its own.
  assert "\nself-normalised\n  mean –, deviation –, " in shown
  assert "nan" not in shown
  lines = shown.splitlines()
  assert max(map(len, lines)) <= 80 + len(str(out)) and "|" not in shown

  def refuse(word):
    raise AssertionError(word)

  text = (out / "ope.json").read_text()
  content = json.loads(text, parse_constant=refuse)
  found = {each["policy"]: each for each in content["policies"]}
  left = found["offline_fixtures:left"]
  assert left["effective_sample_size"] == 0
  for estimator in ("self_normalised", "ordinary"):
    assert left["statistics"][estimator]["mean"] == [None, None, None]
  # All episodes return 1 + 1/2 + 1/4, which is not below 1.75.
  random = found["random"]["statistics"]["self_normalised"]
  assert random["below_1.75"] == [0, 0, 0]


def test_a_policy_that_acts_otherwise_is_not_taken_for_the_old(
  tmp_path, capsys, monkeypatch
):
  """Refits of other thresholds are not either: they begin anew."""
  data, out = _data(tmp_path / "data"), tmp_path / "out"
  policy = ["--policy", _POLICY, "--estimators", "fitted", "--refits", "2"]
  assert not _ope(data, out, *policy)
  assert not _ope(data, out, *policy, "--below", "1")
  assert "P(G < 1)" in capsys.readouterr().out
  monkeypatch.setattr(offline_fixtures, "mostly_right", offline_fixtures.left)
  assert _ope(data, out, *policy) == main.EXIT_BAD_INPUT
  assert "a fit with another probabilities" in capsys.readouterr().err


@pytest.mark.slow
def test_vector_rewards_have_a_part_each_and_correlations(tmp_path, capsys):
  """The second reward is minus twice the first one."""
  rng = np.random.default_rng(0)
  made = []
  for _ in range(12):
    actions = rng.integers(2, size=3)
    seen = rng.normal(size=[4, 4]).astype(np.float32)
    rewards = np.stack([actions, -2.0 * actions], 1).astype(np.float32)
    made.append(
      Episode(seen[:-1], actions, rewards, seen[1:], True, np.full(3, 0.5))
    )
  description = Description((4,), np.dtype(np.float32), 2, 2)
  data = offline_fixtures.write(tmp_path / "data", made, description)
  out = tmp_path / "out"
  policies = ["--policies", _POLICY, "random", "--refits", "2"]
  assert not _ope(data, out, *policies, "--updates", "200")
  shown = capsys.readouterr().out
  assert "Policies by mean of reward 1" in shown and "Correlations" in shown
  content = json.loads((out / "ope.json").read_text())
  found = {(e["policy"], e["reward"]): e for e in content["policies"]}
  assert set(found) == {(p, d) for p in (_POLICY, "random") for d in (0, 1)}
  for policy, right in ((_POLICY, 0.75), ("random", 0.5)):
    for part, scale in ((0, 1.0), (1, -2.0)):
      each = found[policy, part]
      low, high = each["statistics"]["ordinary"]["mean"][1:]
      assert low < 1.75 * right * scale < high
      assert each["correlation"][0][1] < -0.5
      assert "neighbours" not in each["statistics"]
  assert _ope(data, out, "--policy", "random", "--agent", "mmdqn")
  assert "use joint_mmdqn" in capsys.readouterr().err


def test_a_csv_of_one_action_is_taken_with_more(tmp_path, capsys):
  """It cannot say how many actions there are; --actions can."""
  header = "observation_0,next_observation_0,action,reward,terminated\n"
  lines = "".join(f"{n},{n + 1},0,1,{int(n % 2)}\n" for n in range(8))
  data = tmp_path / "one.csv"
  data.write_text(header + lines)
  out = tmp_path / "out"
  assert _ope(data, out, "--policy", _POLICY) == main.EXIT_BAD_INPUT
  assert "pass --actions" in capsys.readouterr().err
  assert not _ope(data, out, "--policy", _POLICY, "--actions", "2")
  said = " ".join(capsys.readouterr().out.split())
  assert "never takes action 1, which the policy takes in 75.0%" in said


_REFUSED = {
  "weights": (["--estimators", "ordinary"], "needs the behaviour policy's"),
  "estimator": (["--estimators", "mean"], "unknown estimator 'mean'"),
  "statistic": (["--by", "meen"], "unknown statistic 'meen'"),
  "memory": (["--memory", "much"], "--memory wants bytes such as 500M"),
  "policy": (["--policy", "nowhere"], "there is no policy 'nowhere'"),
  "agent": (["--agent", "mmqdn"], "unknown agent 'mmqdn'"),
  "gamma": (["--gamma", "2"], "must lie in [0, 1]"),
  "truth": (["--truth", "Acrobot-v1"], "pass the environment of the data"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_bad_input_is_refused_in_one_line(name, tmp_path, capsys):
  data = _data(tmp_path / "data", behaviour=False)
  extra, message = _REFUSED[name]
  arguments = ["--policy", _POLICY, *extra]
  assert _ope(data, tmp_path / "out", *arguments) == main.EXIT_BAD_INPUT
  shown = capsys.readouterr().err.strip().splitlines()[-1]
  assert shown.startswith("mmdrl: ") and message in shown
  assert (tmp_path / "data" / "data" / "metadata.json").exists()


@pytest.mark.slow
def test_kill_9_and_the_same_command_give_the_same_bytes(tmp_path):
  data = _data(tmp_path / "data", count=40)
  here = str(pathlib.Path(__file__).parent)
  environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])}

  def command(name):
    return [
      *(sys.executable, "-m", "tf_mmdrl", "ope", "--policy", _POLICY),
      *("--data", str(data), "-o", str(tmp_path / name), "--refits", "3"),
      *(*_FAST, "--updates", "600"),
    ]

  subprocess.run(command("whole"), env=environment, check=True)
  kills = 0
  for _ in range(3):
    started = subprocess.Popen(command("cut"), env=environment)
    before = set((tmp_path / "cut").rglob("*"))
    while started.poll() is None and kills < 3:
      time.sleep(0.2)
      if len(set((tmp_path / "cut").rglob("0*")) - before) > 1:
        started.send_signal(signal.SIGKILL)
        kills += 1
        break
    started.wait()
  subprocess.run(command("cut"), env=environment, check=True)
  assert kills
  whole, cut = (
    (tmp_path / name / "ope.json").read_bytes() for name in ("whole", "cut")
  )
  assert whole == cut
