"""What the loss of vectors costs: `benchmarks/joint_cost.py` in short."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))

import joint_cost  # noqa: E402


@pytest.mark.slow
def test_a_thousand_particles_fit_into_a_gigabyte():
  before, after = joint_cost.memory(1000)
  print(f"{after - before:.0f} MB more, {after:.0f} in all")
  assert after - before < 1024


@pytest.mark.slow
def test_vectors_cost_about_ten_times_what_the_line_does():
  rows = joint_cost.in_turns(joint_cost.loss_calls(200), 8)
  print(*rows, sep="\n")
  cost = {name: cpu for name, cpu, _ in rows}
  assert cost["loss, D = 3"] < 20 * cost["loss on the line"]
