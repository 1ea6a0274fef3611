"""Chunks as they come: the credit, the age of weights, who comes and goes."""

import csv
import os
import signal
import time

import pytest
import train_fixtures

from tf_mmdrl.cluster import crew, office, waiting
from tf_mmdrl.train import run_directory, run_state, stopping

pytestmark = pytest.mark.slow


def _state(path, **patience):
  config = train_fixtures.small(
    "system.actors=2",
    "system.order=free",
    "system.staleness=2",
    "schedule.steps=100000",
    "schedule.epsilon_end=0.5",
  )
  shared = office.Office(
    config, stopping.Stop(), patience=waiting.Patience(**patience)
  )
  directory = run_directory.RunDirectory(path)
  path.mkdir(exist_ok=True)
  return run_state.RunState(config, directory, crew.crew(shared))


def _rows(path):
  with (path / "chunks.csv").open(newline="") as file:
    return [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]


def test_updates_follow_steps_and_weights_are_young(ray_here, tmp_path, capfd):
  """While an actor is killed, and one is slower than the other."""
  state = _state(tmp_path / "run")
  running = state.make_rounds(state)
  killed = None
  while state.step < 3200:
    running.play_and_learn()
    if killed is None and state.step > 1600:
      killed = state.actors[1].process
      os.kill(killed, signal.SIGKILL)
  running.settle()
  while running._may_learn():
    running.play_and_learn()
  running.settle()
  steps = state.step - state.config.schedule.learning_starts
  wanted = steps / state.config.schedule.steps_per_update
  # A round that the credit does not suffice for yet is all that may be open.
  assert 0 <= wanted - state.updates < 2 * state.config.round_updates
  running.close()
  rows = _rows(tmp_path / "run")
  assert max(row["staleness"] for row in rows) <= 2
  assert {row["slot"] for row in rows} == {0, 1}
  # All that has arrived is in replay, and counted once.
  assert sum(row["steps"] for row in rows) == state.step == state.steps_played
  kept = [min(slot.step, 1000) for slot in state.slots]  # half of 2,000 each
  assert state.replay.num_steps == sum(kept)
  said = capfd.readouterr().err
  assert said.count("slot 0 (process") == 1
  assert said.count("joins") >= 2
  assert f"slot 1 (process {killed}" in said
  assert "was lost: its process ended; another takes over" in said
  state.close()


def test_a_run_goes_on_with_fewer_actors(ray_here, tmp_path):
  """The slots that nobody plays stay as they are, in checkpoints too."""
  state = _state(tmp_path / "run")
  running = state.make_rounds(state)
  slot = state.actors[1]
  while state.step < 600 or slot.process is None:
    running.play_and_learn()
  os.kill(slot.process, signal.SIGKILL)
  slot._hire = lambda: None  # no machine has room
  slot.submit = lambda *_: None
  deadline = time.monotonic() + 120
  before, begun = state.slots[1].step, state.step
  while state.step < begun + 600 and time.monotonic() < deadline:
    running.play_and_learn()
  running.settle()
  assert state.step >= begun + 600 and state.slots[1].step <= before + 8
  slot.lose("is gone")
  state.save()
  running.close()
  other = _state(tmp_path / "run")
  assert other.restore(pytest.fail, clean=False)
  assert other.fingerprints() == state.fingerprints()
  state.close()
  other.close()
