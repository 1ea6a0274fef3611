"""Agents, kernels and environments of others, without a fork.

The agent is the one that docs/adding_an_algorithm.md adds: the whole page is
followed, its file, its command and its entry point.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import algorithms, errors
from tf_mmdrl.ops import kernel_names
from tf_mmdrl.train import run_directory

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "adding_an_algorithm.md"
_ENVIRONMENT = """
import gymnasium
import dataclasses
import erdqn_agent
import tensorflow as tf
from gymnasium.envs.classic_control import cartpole
from tf_mmdrl.agents import base
from tf_mmdrl.ops import kernels

class WrongShape(erdqn_agent.ExpectileLoss):
  def __call__(self, predicted, target, step):
    return predicted.values - target.values

class BareHead(tf.keras.layers.Layer):
  num_particles = 5

  def call(self, features, training=False, seed=None):
    return tf.zeros([tf.shape(features)[0], 2, 5])

class FlatHead(BareHead):
  def call(self, features, training=False, seed=None):
    return tf.zeros([tf.shape(features)[0], 5])

  def changes(self, factor):
    return []

class BareSettings(erdqn_agent.Settings):
  def head(self, run):
    return lambda make_stream: BareHead()

class DropsActions(erdqn_agent.Settings):
  def head(self, run):
    return lambda make_stream: FlatHead()

class FlatSettings(erdqn_agent.Settings):
  def head(self, run):
    return 5

class Flat(kernels.GaussianMixture):
  def excess_and_slope(self, statistic):
    excess, slope = super().excess_and_slope(statistic)
    return tf.reduce_sum(excess, axis=-1), slope

class Single(kernels.GaussianMixture):
  def excess_and_slope(self, statistic):
    return super().excess_and_slope(statistic)[0]

FLAT, SINGLE = Flat((1.0,)), Single((1.0,))
NARROW = kernels.gaussian(0.5)
NUMBER = 3
BARE_HEAD = dataclasses.replace(erdqn_agent.ALGORITHM, settings=BareSettings)
FLAT_HEAD = dataclasses.replace(erdqn_agent.ALGORITHM, settings=DropsActions)
NO_HEAD = dataclasses.replace(erdqn_agent.ALGORITHM, settings=FlatSettings)
NO_AGENT = dataclasses.replace(
  erdqn_agent.ALGORITHM, agent=lambda *args, **options: 3
)
WRONG_SHAPE = dataclasses.replace(
  erdqn_agent.ALGORITHM,
  agent=lambda *args, power, **options: base.ReturnDistributionAgent(
    *args, loss=WrongShape(), **options
  ),
)

gymnasium.register("Short-v0", cartpole.CartPoleEnv, max_episode_steps=30)
"""
_PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "expectiles"
version = "1.0"

[tool.setuptools]
py-modules = ["erdqn_agent", "short_tasks", "broken_agent"]

"""
_SMALL = (
  "schedule.steps=256 schedule.learning_starts=192 schedule.collect_steps=4"
  " evaluation.episodes=2 evaluation.num_envs=2 evaluation.period=256"
  " network.num_particles=5 system.xla=off"
)
_FEW = [part for text in _SMALL.split() for part in ("--set", text)]


def _blocks(kind):
  return re.findall(rf"```{kind}\n(.*?)```", _PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
  """A package with the page's file and entry point, installed by pip."""
  source = tmp_path_factory.mktemp("source")
  (source / "erdqn_agent.py").write_text(_blocks("python")[0])
  (source / "short_tasks.py").write_text(_ENVIRONMENT)
  (source / "broken_agent.py").write_text("import no_such_package\n")
  (entry_point,) = _blocks("toml")
  (source / "pyproject.toml").write_text(_PROJECT + entry_point)
  folder = tmp_path_factory.mktemp("site")
  offline = ["--no-index", "--no-deps", "--no-build-isolation"]
  install = ["-m", "pip", "install", "--quiet", "--target", str(folder)]
  subprocess.run(
    [sys.executable, *install, *offline, str(source)],
    check=True,
    capture_output=True,
  )
  sys.path.insert(0, str(folder))
  yield folder
  sys.path.remove(str(folder))


def test_the_documented_command_trains(package, tmp_path):
  """As it stands, in the file's folder, but for the length of the run."""
  command = _blocks("bash")[0].strip()
  path, program, *rest = shlex.split(command)
  assert (path, program) == ("PYTHONPATH=.", "mmdrl")
  done = subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", *rest, *_FEW]
    + ["--run-dir", str(tmp_path / "run")],
    cwd=package,
    env={**os.environ, "PYTHONPATH": "."},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  trusted = run_directory.RunDirectory(tmp_path / "run", ["erdqn_agent"])
  config = trusted.config()
  assert config.own == {"power": 1.5}


def test_the_next_command_that_a_run_names_works(
  package, tmp_path, capsys, monkeypatch
):
  """It names the modules that the run's settings may import."""
  del package
  monkeypatch.chdir(tmp_path)
  line = ["train", "--env", "short_tasks:Short-v0", *_FEW]
  line += ["--set", "schedule.learning_starts=256"]  # the end is what matters
  assert main.main([*line, "--run-dir", "a run"]) == 0
  _, _, command = capsys.readouterr().out.partition("next: ")
  assert command == ("mmdrl watch 'a run' -o game.mp4 --import short_tasks\n")
  words = shlex.split(command)[1:]
  assert main.main([*words, "--max-steps", "3"]) == 0
  assert (tmp_path / "game.mp4").stat().st_size > 1000


def test_a_package_brings_an_agent_a_kernel_and_an_environment(
  package, tmp_path, capsys
):
  del package
  assert algorithms.names()[-1] == "erdqn"
  assert main.main(["agents"]) == 0
  assert (
    "erdqn              of the package expectiles\n" in capsys.readouterr().out
  )
  assert main.main(["agents", "erdqn"]) == 0
  shown = capsys.readouterr().out
  assert "expectiles at even levels" in shown
  assert "agent.power=2.0" in shown and "1902.08102" in shown
  line = ["train", "--env", "short_tasks:Short-v0", *_FEW]
  ours = ["--agent", "erdqn", "--run-dir", str(tmp_path / "ours")]
  assert main.main([*line, *ours]) == 0
  other = ["--set", "agent.kernel=short_tasks:NARROW"]
  other += ["--run-dir", str(tmp_path / "kernel")]
  assert main.main([*line, *other]) == 0


@pytest.mark.parametrize(
  "name, message",
  [
    ("WRONG_SHAPE", "WrongShape must give one number for each example"),
    ("BARE_HEAD", "got a BareHead without changes"),
    (
      "FLAT_HEAD",
      "the network 'ReturnNetwork' must give particles [B, A, N] with A = 2"
      " actions, got ('B', 5)",
    ),
    ("NO_HEAD", "ReturnNetwork needs a head, got 5"),
    (
      "NO_AGENT",
      "the agent 'short_tasks:NO_AGENT' must make a"
      " tf_mmdrl.agents.base.ReturnDistributionAgent, got a int",
    ),
  ],
)
def test_an_agent_of_the_wrong_shape_is_one_line(
  package, tmp_path, capsys, name, message
):
  del package
  line = ["train", "--env", "CartPole-v1", "--agent", f"short_tasks:{name}"]
  line += [*_FEW, "--run-dir", str(tmp_path / "run")]
  assert main.main(line) == main.EXIT_BAD_INPUT
  shown = capsys.readouterr().err
  assert "Traceback" not in shown
  assert message in shown.strip().splitlines()[-1]


@pytest.mark.parametrize(
  "name, message",
  [
    ("broken_agent:ALGORITHM", "cannot be imported: ModuleNotFoundError: No "),
    ("no_such_module:ALGORITHM", "cannot be imported"),
    ("erdqn_agent:ALGORITM", "in erdqn_agent 'ALGORITM'; did you mean 'ALGO"),
    ("short_tasks:NUMBER", "must be a .*Algorithm, got a int"),
    ("json:NAME", "json .*has no 'NAME' and nothing of that kind"),
    ("erdqnn", "did you mean 'erdqn'"),
    ("a b:c", "unknown agent 'a b:c'"),
  ],
)
def test_what_is_wrong_with_an_agent_is_said(package, name, message):
  del package
  with pytest.raises(errors.UserError, match=message):
    algorithms.get(name)


@pytest.mark.parametrize(
  "name, message",
  [
    ("short_tasks:NUMBER", "the kernel .* must be a .*Kernel, got a int"),
    (
      "short_tasks:FLAT",
      r"the kernel 'short_tasks:FLAT' must give the excess and the slope, both"
      r" of the statistic's shape, got the shapes \(2, 3\) and \(2, 3, 5\)",
    ),
    ("short_tasks:SINGLE", "'short_tasks:SINGLE' must give the excess and the"),
    ("short_tasks:NAROW", "did you mean 'NARROW'"),
    ("no_such_module:NARROW", "cannot be imported"),
  ],
)
def test_what_is_wrong_with_a_kernel_is_said(package, name, message):
  del package
  with pytest.raises(errors.UserError, match=message):
    kernel_names.parse(name)
