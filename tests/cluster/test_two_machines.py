"""Two machines on one, by namespaces: runs and sweeps that lose each other.

benchmarks/two_machines.py does the same with longer runs and cuts.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"),
    reason="only root makes network namespaces, by ip and nsenter",
  ),
]


def _benchmark(folder, *words):
  """Its exit code and what it printed."""
  done = subprocess.run(
    [sys.executable, "benchmarks/two_machines.py", str(folder), *words],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    cwd=_ROOT,
    env={**os.environ, "PYTHONPATH": str(_ROOT)},
  )
  return done.returncode, done.stdout


def test_a_cable_that_is_pulled_changes_no_bit(tmp_path):
  """For 8 s, in the middle of a run that prioritises."""
  run = ["--only", "MinAtar, prioritised", "--steps", "480"]
  code, said = _benchmark(tmp_path, "--cut", "8", *run)
  assert code == 0 and "the same fingerprint" in said, said
  assert "exit 0" in said and said.count("alive") == 4  # twice two machines


def test_a_sweep_that_loses_a_machine_ends_with_the_same_table(tmp_path):
  """Its runs go on elsewhere, from what was fetched."""
  run = ["--collect", "--seeds", "1", "--steps", "480"]
  code, said = _benchmark(tmp_path, "--sweep", *run)
  assert code == 0 and "4 runs, the same table" in said, said
