"""`mmdrl play` and `mmdrl serve` as a user runs them; a killed `export`."""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
import serving_fixtures
import tensorflow as tf

from tf_mmdrl import serving
from tf_mmdrl.cli import main, serve_command
from tf_mmdrl.serving.limits import Limits
from tf_mmdrl.train import playing

_MMDRL = [sys.executable, "-m", "tf_mmdrl"]


def test_play_finds_what_the_run_found(run, capsys):
  for number in serving.versions(run / "export"):
    flags = ["--version", str(number)]
    assert main.main(["play", str(run / "export"), *flags]) == 0
    out = capsys.readouterr().out
    assert f"policy of step {number}, 4 games" in out
    assert re.search(r"the run itself found \S+ at this step: the same", out)


def test_play_takes_other_games(run, capsys):
  flags = ["--env", "MinAtar/Asterix", "--episodes", "2", "--score", "cvar:0.5"]
  assert main.main(["play", str(run / "export"), *flags]) == 0
  out = capsys.readouterr().out
  assert "2 games" in out and "the run itself" not in out


@pytest.mark.parametrize("score", ["mean", "cvar:0.3"])
def test_a_run_and_its_export_play_the_same_games(run, capsys, score):
  shown = []
  for command, path in (
    ("evaluate", run),
    ("evaluate", run / "export"),
    ("play", run / "export"),
  ):
    flags = ["--score", score, "--seed", "3", "--epsilon", "0.1"]
    assert main.main([command, str(path), *flags]) == 0
    shown.append(capsys.readouterr().out)
  assert shown[0] == shown[1] == shown[2] and "4 games" in shown[0]


def test_a_run_and_its_export_give_the_same_distributions(run):
  policies = [playing.open_policy(path) for path in (run, run / "export")]
  observations = tf.ones([2, *serving_fixtures.SHAPE], tf.uint8)
  mine, theirs = (policy.returns(observations) for policy in policies)
  np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-5)
  np.testing.assert_allclose(mine.weights(), theirs.weights(), rtol=1e-6)
  assert policies[0][:5] == policies[1][:5]  # all but the functions


def test_of_a_run_no_program_is_run(run, tmp_path):
  """Also if there is one where a directory of versions would have it."""
  copy = shutil.copytree(run, tmp_path / "run")
  serving.publish(serving_fixtures.weighted_network(), copy, 999)
  policy = playing.open_policy(copy)
  assert policy.number == 320 and policy.config is not None


@pytest.mark.parametrize(
  "flags, message",
  [
    (["--env", "CartPole-v1"], "but CartPole-v1 gives float32 [4]"),
    (["--env", "MinAtar/Seaquest"], "the policy wants observations uint8"),
    (["--score", "cvar:2"], "level must be in (0, 1], got 2"),
    (["--risk", "0.5"], "--risk 0.5 is now --score cvar:0.5"),
    (["--version", "7"], "no version 7"),
  ],
)
def test_what_does_not_fit_is_one_line(run, capsys, flags, message):
  assert main.main(["play", str(run / "export"), *flags]) == 2
  error = capsys.readouterr().err
  assert message in error and error.count("\n") == 1


def test_a_model_of_others_needs_an_environment(tmp_path, capsys):
  serving.publish(serving_fixtures.weighted_network(), tmp_path, 1)
  assert main.main(["play", str(tmp_path)]) == 2
  assert "pass --env" in capsys.readouterr().err
  assert main.main(["play", str(tmp_path), "--env", "MinAtar/Breakout"]) == 2
  assert "knows 3 actions" in capsys.readouterr().err


def test_the_weights_of_an_export_count(tmp_path):
  network = serving_fixtures.weighted_network()
  serving.publish(network, tmp_path, 1)
  policy = playing.open_export(tmp_path)
  observations = tf.ones([2, *serving_fixtures.SHAPE], tf.uint8)
  found, (wanted, _) = policy.returns(observations), network(observations)
  np.testing.assert_allclose(found.weights(), wanted.weights(), rtol=1e-5)
  expected = policy.expected(observations)
  np.testing.assert_allclose(found.mean(), expected, rtol=1e-4)
  assert (policy.config, policy.score) == (None, None)


def test_serve_answers_until_it_is_told_to_stop(run):
  command = [*_MMDRL, "serve", str(run / "export"), "--port", "0"]
  with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
    try:
      lines = [process.stdout.readline() for _ in range(2)]
      assert lines[0] == "version 320 is served\n"
      address = lines[1].removeprefix("serving at ").strip()
      assert address.startswith("http://127.0.0.1:")
      zeros = tf.zeros([2, *serving_fixtures.SHAPE], tf.uint8).numpy().tolist()
      body = json.dumps({"instances": zeros}).encode()
      with urllib.request.urlopen(f"{address}:predict", body) as response:
        assert len(json.load(response)["predictions"]) == 2
    finally:
      process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


@pytest.mark.parametrize(
  "flags, message",
  [
    (["--port", "70000"], "--port must lie in 0..65535"),
    (["--max-batch", "0"], "--max-batch must be above 0, got 0"),
    (["--timeout", "nan"], "--timeout must be above 0, got nan"),
    (["--max-pending", "100"], "16777216 bytes, got 100"),
    (["--max-answer", "0"], "--max-answer must be above 0, got 0"),
    (["--name", "a/b"], "--name must be a word without / and :, got 'a/b'"),
    ([], "there is no exported policy"),
  ],
)
def test_serve_tells_bad_flags(tmp_path, capsys, flags, message):
  assert main.main(["serve", str(tmp_path), *flags]) == 2
  assert message in capsys.readouterr().err


def test_the_limits_of_the_command_are_those_of_the_server():
  parser = argparse.ArgumentParser()
  serve_command.add_arguments(parser)
  args = parser.parse_args(["DIR"])
  assert serve_command.limits(args) == Limits()


def test_a_port_that_is_taken_is_told(run, capsys):
  with socket.create_server(("127.0.0.1", 0)) as taken:
    port = str(taken.getsockname()[1])
    assert main.main(["serve", str(run / "export"), "--port", port]) == 2
  error = capsys.readouterr().err
  assert f"cannot listen at 127.0.0.1:{port}: address already in use" in error
  assert error.count("\n") == 1


def test_serve_needs_no_tf_agents():
  code = (
    "import sys; sys.modules['tf_agents'] = None;"
    " sys.modules['tensorflow_probability'] = None;"
    " import tf_mmdrl.cli.serve_command, tf_mmdrl.serving.server"
  )
  subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", ["aiohttp", "orjson"])
def test_what_serve_needs_is_told(tmp_path, capsys, monkeypatch, module):
  for name in ("server", "rest"):  # loaded anew
    monkeypatch.delitem(sys.modules, f"tf_mmdrl.serving.{name}", raising=False)
    monkeypatch.delattr(serving, name, raising=False)
  monkeypatch.setitem(sys.modules, module, None)
  assert main.main(["serve", str(tmp_path)]) == 2
  error = capsys.readouterr().err
  assert module in error and "pip install 'tf-mmdrl[serve]'" in error


def _kill_exports(run, directory, kills):
  """Kills `mmdrl export` at random moments of its writing."""
  serving.publish(serving_fixtures.weighted_network(), directory, 1)
  chance = random.Random(0)
  for _ in range(kills):
    command = [*_MMDRL, "export", str(run), "-o", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None and not list(directory.glob(".tmp-*")):
      time.sleep(0.001)
    with contextlib.suppress(subprocess.TimeoutExpired):
      process.wait(chance.uniform(0, 0.4))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = serving.versions(directory)
    assert there in ([1], [1, 320])
    for number in there:
      loaded = tf.saved_model.load(str(directory / str(number)))
      assert set(loaded.signatures) == set(serving_fixtures.SIGNATURES)


def test_a_killed_export_leaves_whole_versions(run, tmp_path):
  _kill_exports(run, tmp_path, kills=1)


@pytest.mark.slow
def test_twenty_killed_exports_leave_whole_versions(run, tmp_path):
  _kill_exports(run, tmp_path, kills=20)
