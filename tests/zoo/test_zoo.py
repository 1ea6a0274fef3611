"""The zoo: what it says of its policies is so, and they play."""

import argparse
import importlib.util
import pathlib
import shlex
import shutil

import numpy as np
import pytest

from tf_mmdrl import serving, zoo
from tf_mmdrl.cli import main, train_command
from tf_mmdrl.core import errors
from tf_mmdrl.environments import names
from tf_mmdrl.offline import target_policies
from tf_mmdrl.serving import manifests
from tf_mmdrl.train import playing
from tf_mmdrl.zoo import policies

_ENTRIES = zoo.entries()
_PLACE = pathlib.Path(__file__).parents[2] / "benchmarks" / "zoo.py"
_SPEC = importlib.util.spec_from_file_location("zoo_benchmark", _PLACE)
benchmark = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(benchmark)
_MOST = 15e6  # bytes of all that is in the zoo


@pytest.fixture(scope="module")
def opened():
  """Policies that are open already, by name."""
  found = {}

  def open_policy(name):
    if name not in found:
      found[name] = playing.open_export(zoo.find(name))
    return found[name]

  return open_policy


@pytest.fixture
def copied(tmp_path, monkeypatch):
  """The exports of CartPole's policy, to be damaged."""
  exports = tmp_path / "exports"
  shutil.copytree(zoo.find("cartpole"), exports / "cartpole")
  monkeypatch.setattr(policies, "_EXPORTS", exports)
  return exports / "cartpole" / str(_ENTRIES["cartpole"].step)


@pytest.mark.parametrize("name", _ENTRIES)
def test_the_list_says_what_the_files_say(name):
  entry, exports = _ENTRIES[name], zoo.find(name)
  version = exports / str(entry.step)
  assert serving.versions(exports) == [entry.step]
  assert manifests.verify(version)  # SHA-256 of every file
  said = serving.metadata(exports, entry.step)
  assert said["environment"] == entry.environment
  assert (said["agent"], said["git_commit"]) == (entry.agent, entry.commit)
  assert len(entry.commit) == 40 and entry.error >= 0 and entry.episodes >= 100
  assert entry.train.startswith("mmdrl train ")
  assert said["config"]["system"]["seed"] == entry.seed
  assert entry.games_seed != entry.seed  # the games are fresh ones


@pytest.mark.parametrize("name", _ENTRIES)
def test_the_command_gives_every_setting_of_the_run(name, monkeypatch):
  """Where a default has changed since, the command must name the old one."""
  entry = _ENTRIES[name]
  made = serving.metadata(zoo.find(name), entry.step)["config"]
  monkeypatch.setitem(benchmark.TRAIN, name, entry.train)
  benchmark.check(name, made)
  for group, field, value in (
    ("agent", "unit", "auto:7"),
    ("agent", "kernel", "laplace:1"),
    ("schedule", "steps", 7_000),
    ("network", "num_particles", 7),
  ):
    other = {**made, group: {**made[group], field: value}}
    with pytest.raises(errors.UserError, match=f"{group}.{field}"):
      benchmark.check(name, other)


def test_the_benchmark_trains_what_the_page_says():
  games = {
    line.partition("--env ")[2].split()[0] for line in benchmark.TRAIN.values()
  }
  assert games == {
    *(f"MinAtar/{game}" for game in names.MINATAR_GAMES),
    *("CartPole-v1", "LunarLander-v3", "Pong"),
  }
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  for line in benchmark.TRAIN.values():
    train_command.wanted(parser.parse_args(shlex.split(line)[2:]))


def test_the_benchmark_puts_the_better_policy_into_the_zoo(
  tmp_path, monkeypatch, capsys
):
  """And only if its command is that of its run."""
  run, entry = tmp_path / "runs" / "cartpole", _ENTRIES["cartpole"]
  shutil.copytree(zoo.find("cartpole"), run / "export")
  (tmp_path / "zoo").mkdir()
  (tmp_path / "zoo" / "zoo.json").write_text("{}")
  monkeypatch.setattr(benchmark, "_ZOO", tmp_path / "zoo")
  monkeypatch.setattr(benchmark, "_EPISODES", 2)
  monkeypatch.setattr(policies, "_LIST", tmp_path / "zoo" / "zoo.json")
  other = f"{entry.train} --set agent.gamma=0.5"
  monkeypatch.setitem(benchmark.TRAIN, "cartpole", other)
  with pytest.raises(errors.UserError, match="other settings than its comm"):
    benchmark.put("cartpole", run / "export")
  assert not benchmark.is_there("cartpole", run)
  monkeypatch.setitem(benchmark.TRAIN, "cartpole", entry.train)
  benchmark.put("cartpole", run / "export")
  assert benchmark.is_there("cartpole", run)
  made = zoo.entries()["cartpole"]
  assert (made.sha256, made.step) == (entry.sha256, entry.step)
  assert made.episodes == 2 and f"step {entry.step}" in capsys.readouterr().out
  monkeypatch.setattr(benchmark, "_MOST", 1000)
  with pytest.raises(errors.UserError, match="1,000 are the most"):
    benchmark.put("cartpole", run / "export")


def test_the_zoo_is_small():
  there = [path for path in policies._HERE.rglob("*") if path.is_file()]
  assert sum(path.stat().st_size for path in there) < _MOST
  kept = {path.name for path in policies._EXPORTS.iterdir()}
  assert kept == set(_ENTRIES)  # nothing that the list does not know


def _play(policy, episodes, seed, **evaluation):
  config = policy.config.replace(system=dict(seed=seed))
  config = playing.for_episodes(config, str(episodes))
  config = config.replace(evaluation=evaluation)
  return np.mean(playing.evaluate(policy, config).scores)


@pytest.mark.parametrize("name", _ENTRIES)
def test_each_policy_beats_random_actions(name, opened):
  short = dict(max_episode_steps=150)
  found = _play(opened(name), 8, 7, **short)
  random = _play(opened(name), 8, 7, epsilon=1.0, **short)
  assert found > random + 0.2 * abs(random)


@pytest.mark.slow
@pytest.mark.parametrize("name", _ENTRIES)
def test_each_policy_has_its_score(name, opened):
  entry = _ENTRIES[name]
  found = _play(opened(name), entry.episodes, entry.games_seed)
  # The same games, but other processors round otherwise.
  width = max(3 * np.sqrt(2) * entry.error, 0.01 * abs(entry.score))
  assert abs(found - entry.score) <= width


def test_damage_is_told(copied):
  name = "variables/variables.data-00000-of-00001"
  content = bytearray((copied / name).read_bytes())
  content[len(content) // 2] ^= 1
  (copied / name).write_bytes(content)
  with pytest.raises(errors.UserError, match="checksum is not the one"):
    playing.open_export(zoo.find("cartpole"))
  # Whoever changes a file may change the manifest, but not the list as well.
  manifests.write(copied)
  with pytest.raises(errors.UserError, match="not what was put into the zoo"):
    zoo.find("cartpole")


def test_other_versions_are_told(copied):
  shutil.copytree(copied, copied.parent / "99999999")
  with pytest.raises(errors.UserError, match="not what was put into the zoo"):
    zoo.find("cartpole")


def test_a_damaged_list_is_told(tmp_path, monkeypatch):
  (tmp_path / "zoo.json").write_text('{"cartpole": ')
  monkeypatch.setattr(policies, "_LIST", tmp_path / "zoo.json")
  with pytest.raises(errors.UserError, match="install tf-mmdrl again"):
    zoo.entries()


@pytest.mark.parametrize("command", ["evaluate", "play", "serve", "watch"])
def test_unknown_names_are_told(command, capsys):
  output = ["-o", "it.gif"] if command == "watch" else []
  with pytest.raises(SystemExit) as stop:
    main.main([command, "zoo:cartpol", *output])
  assert stop.value.code == main.EXIT_BAD_INPUT
  said = capsys.readouterr().err
  assert "unknown policy of the zoo 'cartpol'; did you mean 'cartpole'?" in said
  assert said.count("\n") == 1


def test_the_command_lists_and_shows_them(capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  assert main.main(["zoo"]) == 0
  listed = capsys.readouterr().out
  page = pathlib.Path(zoo.__file__).parents[2] / "docs" / "zoo.md"
  assert listed in page.read_text()
  for name, entry in _ENTRIES.items():
    assert f"zoo:{name}" in listed and f"{entry.score:.2f}" in listed
  assert main.main(["zoo", "zoo:cartpole"]) == 0
  shown = capsys.readouterr().out
  assert _ENTRIES["cartpole"].commit in shown
  assert "mmdrl watch zoo:cartpole" in shown
  assert main.main(["zoo", "cartpoll"]) == main.EXIT_BAD_INPUT


def test_commands_take_them(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  short = ["--episodes", "2", "--seed", "3", "--epsilon", "1"]
  assert main.main(["evaluate", "zoo:cartpole", *short]) == 0
  assert "2 games" in capsys.readouterr().out
  assert main.main(["watch", "zoo:cartpole", "-o=it.gif", "--max-steps=2"]) == 0
  assert (tmp_path / "it.gif").stat().st_size > 1000


def test_their_probabilities_are_evaluated_from_logs():
  policy = target_policies.open_policy("zoo:cartpole", epsilon=0.2)
  chances = policy.probabilities(np.zeros([3, 4], np.float32))
  np.testing.assert_allclose(np.sort(chances), [[0.1, 0.9]] * 3)
