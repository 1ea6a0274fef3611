import os
import subprocess
import sys


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


def test_who_asks_for_chatter_gets_it():
  code = (
    "import os; from tf_mmdrl.cli import quiet\n"
    "with quiet.loading():\n  os.write(2, b'chatter')"
  )
  assert run(code, TF_CPP_MIN_LOG_LEVEL="0") == (0, "chatter")
