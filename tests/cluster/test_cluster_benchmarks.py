"""The benchmarks of clusters count what went wrong; no Ray is started."""

import argparse
import pathlib
import random
import re
import sys

import pytest

from tf_mmdrl.cli import sweep_command

_BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(_BENCHMARKS))

import attacked  # noqa: E402
import killed_actors  # noqa: E402
import sizing  # noqa: E402
import two_machines  # noqa: E402


def test_every_run_of_the_sweep_takes_its_settings(tmp_path):
  """DQN has no particles, and refused the number of them."""
  parser = argparse.ArgumentParser()
  sweep_command.add_arguments(parser)
  words = two_machines.sweep_words(tmp_path, 2, 1600)
  jobs = sweep_command.planned(parser.parse_args(words[1:]))
  assert len(jobs) == 8
  few = {job.agent: "network.num_particles=5" in job.arguments for job in jobs}
  assert few == {"dqn": False, "qrdqn": True}


@pytest.mark.parametrize("part", ["sweep", "compare"])
def test_a_failure_without_an_attack_is_told(monkeypatch, tmp_path, part):
  """It was compared with nothing, and two failures were alike."""
  failed = attacked.Outcome(2, "", "mmdrl: no such setting\n")
  monkeypatch.setattr(attacked, "run", lambda *_: failed)
  with pytest.raises(RuntimeError, match="ended with 2: mmdrl: no such"):
    if part == "sweep":
      two_machines.sweep(tmp_path, False, 2, 1600)
    else:
      two_machines.compare("Pong", 0, 800, tmp_path)


def _attack(monkeypatch, folder, outcomes, wanted):
  """Attacks a run by no kill; the commands of the run end as listed."""
  ends = iter(outcomes)

  class Command:
    pid = 0

    def __init__(self, words, log):
      pass

    def running(self):
      return False

    def end(self, seconds):
      return next(ends)

  fine = attacked.Outcome(0, "", "")
  monkeypatch.setattr(attacked, "Command", Command)
  monkeypatch.setattr(attacked, "run", lambda *_: fine)
  monkeypatch.setattr(attacked, "fingerprint", lambda path, log: wanted)
  return killed_actors._attack("Pong", 0, 2, random.Random(0), folder)


def test_a_traceback_counts_whatever_the_exit_code_is(monkeypatch, tmp_path):
  outcomes = [
    attacked.Outcome(1, "", "Traceback (most recent call last):\n"),
    attacked.Outcome(0, "", "Traceback (most recent call last):\n"),
  ]
  row = _attack(monkeypatch, tmp_path, outcomes, "a fingerprint")
  assert (row.tracebacks, row.silent, row.lost) == (2, 0, 0)


def test_two_runs_without_a_fingerprint_are_not_alike(monkeypatch, tmp_path):
  fine = attacked.Outcome(0, "", "")
  with pytest.raises(RuntimeError, match="has no fingerprint"):
    _attack(monkeypatch, tmp_path, [fine], "")


def test_the_table_of_sizes_is_what_is_counted():
  """It said 26 MB for the Nature network's weights, and 6.6 GB/s."""
  layers = [(8 * 8 * 4, 32), (4 * 4 * 32, 64), (3 * 3 * 64, 64)]
  layers += [(7 * 7 * 64, 512), (512, 6 * 200)]
  by_hand = sum((inputs + 1) * outputs for inputs, outputs in layers)
  assert sizing.parameters(200, 6) == by_hand == 2_299_728
  found = sizing.insertion(chunks=1, repeats=1)
  # A frame, and a stack's other frames where a game begins.
  assert 84 * 84 < found.bytes < 84 * 84 * 1.1 and found.rate > 0
  page = (_BENCHMARKS.parent / "docs" / "cluster.md").read_text()
  table = page.partition("## How many actors")[2]
  card, weights, _, store = sizing.lines(by_hand, found._replace(bytes=7350))
  for line in (card, weights, store):
    for figure in re.findall(r"[\d.,]+ (?:MB|GB/s|GB|bytes)", line):
      assert figure in table, figure
