"""Nothing is on the screen but what this project says."""

import os
import re
import subprocess
import sys

import pytest


def run(code, **environment):
  done = subprocess.run(
    [sys.executable, "-c", code],
    capture_output=True,
    text=True,
    env={**os.environ, **environment},
  )
  return done.returncode, done.stderr


def test_tensorflow_loads_in_silence_and_errors_are_heard():
  code = (
    "import os, sys; from tf_mmdrl.cli import quiet\n"
    "with quiet.loading():\n"
    "  os.write(2, b'chatter'); import tf_mmdrl.environments\n"
    "print('heard', file=sys.stderr)"
  )
  assert run(code) == (0, "heard\n")


def test_exceptions_get_through():
  code = (
    "from tf_mmdrl.cli import quiet\nwith quiet.loading():\n  import nothing"
  )
  status, error = run(code)
  assert status == 1 and "No module named 'nothing'" in error


@pytest.mark.parametrize("error", ["pass", "raise ImportError('half loaded')"])
def test_an_interrupt_that_a_library_swallows_is_heard(error):
  code = (
    "import signal\nfrom tf_mmdrl.cli import quiet\n"
    "try:\n"
    "  with quiet.loading():\n"
    "    try: signal.raise_signal(signal.SIGINT)\n"
    f"    except BaseException: {error}\n"
    "except KeyboardInterrupt:\n"
    "  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    "  raise SystemExit(3)"
  )
  assert run(code, TF_CPP_MIN_LOG_LEVEL="0") == (3, "")


def test_who_asks_for_chatter_gets_it():
  code = (
    "import os; from tf_mmdrl.cli import quiet\n"
    "with quiet.loading():\n  os.write(2, b'chatter')"
  )
  assert run(code, TF_CPP_MIN_LOG_LEVEL="0") == (0, "chatter")


_SHORT = (
  "schedule.steps=192",
  "schedule.learning_starts=176",
  "evaluation.period=192",
  "evaluation.episodes=2",
  "evaluation.max_episode_steps=20",
  "environment.num_envs=2",
  "environment.max_episode_steps=20",
)
_TRAINED = """\
mmdqn on CartPole-v1, preset classic, 192 steps
run: it
evaluation after 192 steps: NUMBER
best, after 192 steps: NUMBER
policy: it/export/192
curve: it/metrics.csv
picture: it/learning_curve.png
next: mmdrl watch it -o game.mp4
"""


def _mmdrl(path, line):
  """What a command prints, which must be all that is said."""
  done = subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", *line.split()],
    capture_output=True,
    text=True,
    cwd=path,
    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
  )
  # A machine that is slow is told how far it is, every ten seconds.
  said = re.sub(r"^[\w /.-]+: +\d+%, .*\n", "", done.stderr, flags=re.MULTILINE)
  assert (done.returncode, said) == (0, ""), line
  assert max(map(len, done.stdout.splitlines())) <= 80
  return re.sub(r"-?\d+\.\d+", "NUMBER", done.stdout)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """Where a run `it` was trained, and what that printed."""
  path = tmp_path_factory.mktemp("quiet")
  settings = " ".join(f"--set {setting}" for setting in _SHORT)
  line = f"train --env CartPole-v1 --no-xla --run-dir it {settings}"
  return path, _mmdrl(path, line)


def test_training_says_nothing_else(trained):
  assert trained[1] == _TRAINED


def test_calibrating_says_nothing_else(trained):
  """It loads what plays games later than other commands do."""
  lines = _mmdrl(trained[0], "calibrate it --episodes 2").splitlines()
  assert lines[0].split()[:3] == ["run", "in", "50"]
  assert lines[1].startswith("CartPole-v1 mmdqn 0 ")
  assert lines[2] == "" and lines[3].startswith("in 50 % and in 90 %: how many")


@pytest.mark.slow
@pytest.mark.parametrize(
  "line, first",
  [
    ("evaluate it --episodes 2", "policy of step 192, 2 games"),
    ("play it/export --episodes 2", "policy of step 192, 2 games"),
    ("export it -o policies --format tflite", "policies/192"),
    ("watch it -o it.gif --max-steps 2", "it.gif: 2 steps"),
    ("record it -o data --episodes 2", "wrote data"),
    ("inspect it --all", "mmdqn on CartPole-v1, seed 0, finished"),
    ("report it -o report", "drawing 1 run"),
    ("doctor --no-speed", "tf-mmdrl"),
    ("presets classic", "environment.name=CartPole-v1"),
    ("agents iqn", "iqn: the quantile function"),
    ("theory --mdps 1", "Theorem"),
    ("chain --lengths 2 --seeds 1 --episodes 2 --rollouts 10", "Moments of"),
    ("train --env CartPole-v1 --dry-run", "environment.name=CartPole-v1"),
  ],
)
def test_other_commands_say_nothing_else(trained, line, first):
  assert _mmdrl(trained[0], line).startswith(first)
