"""The commands around a run, on one small run."""

import csv
import re
import shutil
import subprocess
import sys

import imageio.v2 as imageio
import numpy as np
import pytest
import train_fixtures

from tf_mmdrl.cli import dry_run, main, train_command
from tf_mmdrl.core import algorithms, run_files
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import playing, run_directory, trainer, videos


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  path = tmp_path_factory.mktemp("run")
  config = train_fixtures.small("schedule.steps=320")
  trainer.train(config, run_directory.RunDirectory(path))
  return path


def test_inspect_begins_with_where_the_run_stands(run, capsys):
  assert main.main(["inspect", str(run)]) == 0
  lines = capsys.readouterr().out.splitlines()
  score = run_files.last(run_files.RunFiles(run).rows(), "evaluation_score")
  assert lines[0] == "mmdqn on MinAtar/Breakout, seed 0, finished"
  assert lines[1] == "step: 320 of 320"
  assert lines[2].startswith(f"score: {score:.2f} in the newest evaluation")
  assert lines[3].startswith("unit of return: ")
  assert "checkpoint 320: whole" in lines and "exported: 320" in lines
  assert not any("=" in line for line in lines)


def test_inspect_shows_all_of_a_run(run, capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  assert main.main(["inspect", str(run), "--all"]) == 0
  out = capsys.readouterr().out
  assert max(map(len, out.splitlines())) <= 80
  assert "environment.name=MinAtar/Breakout" in out
  for name in ("versions.tensorflow", "machine.cpu", "machine.threads"):
    assert f"\n{name}=" in out
  assert "checkpoint 320: whole" in out and "step: 320 of 320" in out
  (whole,) = re.findall(r"^fingerprint: ([0-9a-f]{64})$", out, re.MULTILINE)
  assert main.main(["inspect", str(run), "--fingerprint"]) == 0
  assert capsys.readouterr().out == f"{whole}\n"


def test_a_dry_run_tells_what_to_expect_and_writes_nothing(
  tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(trainer, "configure_process", lambda config: None)
  monkeypatch.setattr(dry_run, "_SECONDS", 0.1)
  monkeypatch.chdir(tmp_path)
  flags = ["--env", "CartPole-v1", "--agent", "qrdqn", "--no-xla"]
  line = ["train", "--dry-run", *flags, "--set", "network.num_particles=7"]
  assert main.main(line) == 0
  out = capsys.readouterr().out
  settings, _, needs = out.partition("\n\n")
  assert "network.num_particles=7" in settings.splitlines()
  assert "agent.kappa=1.0" in settings.splitlines()  # the algorithm's own
  assert re.search(r"^memory +0\.\d\d GB of replay", needs, re.MULTILINE)
  assert re.search(r"^disk +0\.\d\d GB of replay in", needs, re.MULTILINE)
  assert re.search(r"^time +at least [\d.]+ (s|min|h) for 60,000", needs, re.M)
  assert "which would be new" in needs
  assert not list(tmp_path.iterdir())


def test_the_end_of_training_says_what_comes_next(run, tmp_path, capsys):
  directory = run_directory.RunDirectory(run)
  outcome = trainer.Outcome(True, 320, 1.5, 2.5, 160)
  train_command._show(outcome, directory, configs.Config())
  out = capsys.readouterr().out
  assert f"policy: {run}/export/320\ncurve: {run}/metrics.csv\n" in out
  assert f"picture: {run / 'learning_curve.png'}\n" in out
  assert f"best policy: {run}/export/160\n" in out
  assert out.endswith(f"next: mmdrl watch {run} -o game.mp4\n")
  blank = run_directory.RunDirectory(tmp_path / "my runs")
  train_command._show(outcome, blank, configs.Config())
  out = capsys.readouterr().out
  assert "picture" not in out
  assert f"mmdrl watch '{tmp_path}/my runs' -o" in out


def test_evaluate_finds_what_training_found(run, capsys):
  assert main.main(["evaluate", str(run)]) == 0
  out = capsys.readouterr().out
  rows = run_files.RunFiles(run).rows()
  score = run_files.last(rows, "evaluation_score")
  assert f"mean {score:.2f} " in out
  assert f"the run itself found {score:.2f} at this step: the same" in out
  assert "policy of step 320, 4 games" in out


@pytest.mark.parametrize("games", ["1", "5", "6"])
def test_evaluate_takes_other_numbers(run, capsys, games):
  assert main.main(["evaluate", str(run), "--episodes", games]) == 0
  out = capsys.readouterr().out
  assert f", {games} game" in out
  assert "the run itself" not in out  # it played others


def test_evaluate_writes_the_score_of_each_game(run, capsys, tmp_path):
  path = tmp_path / "scores.csv"
  assert main.main(["evaluate", str(run), "-o", str(path)]) == 0
  out = capsys.readouterr().out
  with path.open(newline="") as file:
    games = list(csv.DictReader(file))
  assert [game["game"] for game in games] == ["0", "1", "2", "3"]
  mean = np.mean([float(game["score"]) for game in games])
  assert f"mean {mean:.2f} " in out and f"\n{path}\n" in out
  steps = np.mean([int(game["steps"]) for game in games])
  assert f"steps: mean {steps:.0f}\n" in out


def test_evaluate_by_risk(run, capsys):
  assert main.main(["evaluate", str(run), "--score", "cvar:0.25"]) == 0
  assert "4 games" in capsys.readouterr().out
  assert main.main(["evaluate", str(run), "--score", "thompson"]) == 2
  assert "without draws" in capsys.readouterr().err


def test_agents_lists_the_family(capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  assert main.main(["agents"]) == 0
  out = capsys.readouterr().out
  listed = dict(line.split(maxsplit=1) for line in out.splitlines())
  for name in ("dqn", "iqn", "adversarial_mmdqn"):
    assert listed[name] == algorithms.get(name).summary
  assert main.main(["agents", "rainbow"]) == 0
  out = capsys.readouterr().out
  assert "sets:  network.noisy=True" in out and "Hessel et al., 2018" in out
  for name in algorithms.names():
    assert main.main(["agents", name]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80, name
  assert main.main(["agents", "rainbo"]) == 2
  assert "did you mean 'rainbow'" in capsys.readouterr().err


def test_an_exported_policy_needs_only_tensorflow(run, tmp_path, capsys):
  assert main.main(["export", str(run), "-o", str(tmp_path)]) == 0
  assert capsys.readouterr().out == f"{tmp_path / '320'}\n"
  code = (
    "import sys, tensorflow as tf;"
    "policy = tf.saved_model.load(sys.argv[1]);"
    "act = policy.signatures['serving_default'];"
    "answer = act(observation=tf.zeros([2, 10, 10, 4], tf.uint8));"
    "print(sorted(answer), answer['q_values'].shape);"
    "assert 'tf_agents' not in sys.modules and 'tf_mmdrl' not in sys.modules"
  )
  done = subprocess.run(
    [sys.executable, "-c", code, str(tmp_path / "320")],
    capture_output=True,
    text=True,
    cwd=tmp_path,
  )
  assert done.stdout == "['action', 'q_values'] (2, 6)\n", done.stderr


def test_watch_writes_a_video_of_a_game(run, tmp_path, capsys):
  video, stills = tmp_path / "game.gif", tmp_path / "stills.png"
  flags = ["-o", str(video), "--stills", str(stills), "--max-steps", "4"]
  assert main.main(["watch", str(run), *flags]) == 0
  assert "4 steps, policy of step 320" in capsys.readouterr().out
  assert len(imageio.mimread(video)) == 4
  height, width = imageio.imread(stills).shape[:2]
  assert height > width  # three rows


def test_watch_on_a_full_disk_is_one_line(run, small_disk, capsys):
  disk = small_disk(8)
  (disk / "rest").write_bytes(b"0" * 4096)
  video = str(disk / "game.gif")
  flags = ["-o", video, "--stills", str(disk / "stills.png")]
  line = ["watch", str(run), *flags, "--max-steps", "2"]
  capsys.readouterr()
  assert main.main(line) == main.EXIT_BAD_INPUT
  (said,) = capsys.readouterr().err.strip().splitlines()
  assert f"cannot write {video!r}: No space left" in said
  assert [path.name for path in disk.iterdir()] == ["rest"]


def test_watch_shows_the_game_that_evaluate_plays(run):
  policy = playing.open_policy(run)
  config = playing.for_episodes(policy.config, "6")
  config = config.replace(evaluation=dict(num_envs=1, epsilon=1.0))
  played = playing.evaluate(policy, config)
  shown = list(videos.play(policy, config, episodes=6, max_steps=10**6))
  assert len(shown) == sum(played.lengths)
  ends = np.cumsum(played.lengths)
  begins = [0, *ends[:-1]]
  assert all(shown[index].score == 0 for index in begins)
  # The last reward of a game comes after its last choice.
  last = [shown[index - 1].score for index in ends]
  assert max(last) > 0 and np.all(np.array(last) <= played.scores)
  short = list(videos.play(policy, config, episodes=6, max_steps=ends[0] + 1))
  assert len(short) == ends[0] + 1
  np.testing.assert_array_equal(short[-1].picture, shown[ends[0]].picture)


@pytest.mark.parametrize("flag", ["--episodes", "--max-steps"])
def test_watch_needs_something_to_show(run, tmp_path, capsys, flag):
  line = ["watch", str(run), "-o", str(tmp_path / "game.gif"), flag, "0"]
  assert main.main(line) == main.EXIT_BAD_INPUT
  assert f"{flag} must be at least 1, got 0" in capsys.readouterr().err


def test_watch_knows_its_formats(run, tmp_path, capsys):
  video = str(tmp_path / "game.avi")
  assert main.main(["watch", str(run), "-o", video]) == main.EXIT_BAD_INPUT
  assert "a video ends in .gif or .mp4" in capsys.readouterr().err


@pytest.mark.parametrize(
  "flags, message",
  [
    (["--env", "Braekout"], "did you mean 'Breakout'"),
    (["--env", "MinAtar/Brekout"], "did you mean 'Breakout'"),
    (["--preset", "papr"], "did you mean 'paper'"),
    (["--agent", "mmdqm"], "did you mean 'mmdqn'"),
    (["--agent", "c51", "--set", "network.num_particles=1"], "at least 2"),
    (["--agent", "c51", "--set", "agent.v_min=20"], "v_min must be below"),
    (["--agent", "dqn", "--set", "network.num_particles=3"], "set it to 1"),
    (["--agent", "iqn", "--set", "agent.base=normal"], "setting of iqn"),
    (["--set", "agent.exploration=ucb:-1"], "beta must be at least 0"),
    (["--set", "evaluation.score=cvar:0"], "level must be in"),
    (["--set", "agent.kernel=unrectified:2"], "alpha in (0, 2)"),
    (["--set", "agent.kernel=gaussian:0"], "must be positive"),
    (["--set", "schedule.step=1"], "did you mean 'schedule.steps'"),
    (["--set", "agent.kernel=gausian:1"], "did you mean 'gaussian'"),
    (["--steps", "many"], "steps must be a whole number, got 'many'"),
    (["--steps", "-1"], "steps must be at least 1, got -1"),
    (["--preset", "paper", "--steps", "2000"], "a run is whole phases"),
    (["--num-envs", "0"], "num_envs must be at least 1, got 0"),
    (["--seed", "x"], "seed must be a whole number, got 'x'"),
    (
      ["--env", "Pendulum-v1"],
      "Pendulum-v1: one scalar, discrete action that starts at 0 is wanted,"
      " got float32 [1]; discretise continuous actions",
    ),
  ],
)
def test_bad_flags_are_one_line(tmp_path, capsys, monkeypatch, flags, message):
  # Op determinism is for the whole process, and so not for the tests.
  monkeypatch.setattr(trainer, "configure_process", lambda config: None)
  monkeypatch.chdir(tmp_path)
  assert main.main(["train", *flags]) == main.EXIT_BAD_INPUT
  said = capsys.readouterr()
  assert message in said.err and said.err.count("\n") == 1
  assert not said.out  # no run was announced


@pytest.mark.parametrize("command", ["inspect", "evaluate", "export"])
def test_what_is_no_run_is_told(tmp_path, capsys, command):
  assert main.main([command, str(tmp_path)]) == main.EXIT_BAD_INPUT
  assert "is not a run" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["evaluate", "watch"])
def test_a_run_without_a_policy_is_told(run, tmp_path, capsys, command):
  shutil.copy(run / "config.json", tmp_path)
  output = ["-o", str(tmp_path / "game.gif")] if command == "watch" else []
  assert main.main([command, str(tmp_path), *output]) == main.EXIT_BAD_INPUT
  error = capsys.readouterr().err
  assert "has no exported policy yet" in error and error.count("\n") == 1


def test_a_version_that_is_not_there_is_told(run, capsys):
  assert main.main(["evaluate", str(run), "--version", "7"]) == 2
  assert "no version 7; there are" in capsys.readouterr().err


def test_the_default_directory_is_the_commands_own():
  from tf_mmdrl.cli import train_command

  config = configs.change(configs.Config(), ["system.seed=3"])
  name = train_command._default_directory(config, "quickstart")
  assert name == "runs/MinAtar-Breakout-mmdqn-quickstart-seed3"


def test_too_much_memory_is_one_line(tmp_path, capsys):
  line = ["train", "--preset", "quickstart", "--run-dir", str(tmp_path / "x")]
  assert main.main([*line, "--set", "replay.capacity=1e13"]) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and "out of memory" in error
  assert "replay.capacity" in error


@pytest.mark.parametrize("games, num_envs", [("5", 5), ("7", 1), ("12", 6)])
def test_so_many_games_are_shared_evenly(games, num_envs):
  """Each environment plays as many, and a number of games overrides steps."""
  config = configs.Config().replace(evaluation=dict(num_envs=6, steps=1000))
  group = playing.for_episodes(config, games).evaluation
  assert (group.episodes, group.num_envs) == (int(games), num_envs)
  assert group.steps == 0
