"""The benchmark of faults, with fewer requests: a real server loses nothing."""

import pathlib
import subprocess
import sys

import pytest

_BENCHMARK = pathlib.Path(__file__).parents[2] / "benchmarks/server_faults.py"


@pytest.mark.slow
def test_nothing_is_lost_silent_or_a_traceback():
  done = subprocess.run(
    [sys.executable, _BENCHMARK, "--requests", "100", "--seconds", "5"],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  assert "damaged exports" in done.stdout
