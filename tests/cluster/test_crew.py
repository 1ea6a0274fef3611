"""Actors in other processes play the same bits, whoever is killed."""

import os
import signal
import threading
import time

import pytest
import train_fixtures

from tf_mmdrl.cluster import crew, office, waiting
from tf_mmdrl.core import errors
from tf_mmdrl.train import rounds, run_directory, run_state, stopping

_PONG = [
  "environment.name=Pong",
  "environment.num_envs=2",
  "environment.rebuild_period=24",
  "replay.prioritized=true",
]


def _config(*changes):
  return train_fixtures.small(
    "system.actors=2", "schedule.epsilon_end=0.5", *changes
  )


def _state(path, config, *, remote, **patience):
  hired = None
  if remote:
    shared = office.Office(
      config, stopping.Stop(), patience=waiting.Patience(**patience)
    )
    hired = crew.crew(shared)
  return run_state.RunState(config, run_directory.RunDirectory(path), hired)


def _rounds(state, number, between=lambda index: None):
  running = rounds.Rounds(state)
  for index in range(number):
    between(index)
    running.play_and_learn()
  running.close()
  return state.fingerprints()


def _kill(actor):
  process = actor.process
  os.kill(process, signal.SIGKILL)
  return process


def test_a_killed_actor_changes_no_bit(ray_here, tmp_path, capfd):
  """Two actors on Ray, one kill -9: the bits of two threads."""
  import ray  # after the room, which sets what Ray reads

  (node,) = ray.nodes()
  assert node["NodeManagerAddress"] == "127.0.0.1"  # nobody else can call
  config = _config()
  here = _state(tmp_path / "a", config, remote=False)
  wanted = _rounds(here, 16)
  there = _state(tmp_path / "b", config, remote=True)
  try:
    first = there.actors[0]

    def kill(index):
      if index == 14:
        _kill(first)

    assert _rounds(there, 16, kill) == wanted
    assert "slot 0 (process" in capfd.readouterr().err
    # What was saved there goes on here, and the other way round.
    there.save()
    there.restore(pytest.fail, clean=False)
    here.save()
    assert there.fingerprints() == here.fingerprints() == wanted
  finally:
    here.close()
    there.close()


@pytest.mark.slow
def test_a_killed_actor_of_an_unseeded_environment_is_said(
  ray_here, tmp_path, capfd
):
  """Who takes over cannot get to where it was, and nobody may pretend so."""
  config = _config("environment.name=misbehaving:Unseeded-v0")
  there = _state(tmp_path, config, remote=True)

  def kill(index):
    if index == 3:
      _kill(there.actors[0])

  try:
    with pytest.raises(errors.UserError, match="in the process that took over"):
      _rounds(there, 5, kill)
  finally:
    there.close()


@pytest.mark.slow
def test_pong_with_many_kills(ray_here, tmp_path):
  """Actions are played again, across fresh starts, also while it is saved."""
  config = _config(*_PONG)
  here = _state(tmp_path / "a", config, remote=False)
  wanted = _rounds(here, 60)
  here.close()
  there = _state(tmp_path / "b", config, remote=True)

  def kill(index):
    if index in (3, 30, 50):
      _kill(there.actors[index % 2])
    if index == 40:
      there.save()
      there.restore(pytest.fail, clean=False)

  assert _rounds(there, 60, kill) == wanted
  there.close()


@pytest.mark.slow
def test_kills_faster_than_an_actor_starts(ray_here, tmp_path, capfd):
  """The learner plays then itself, and the run goes on by the same bits."""
  config = _config()
  wanted = _rounds(here := _state(tmp_path / "a", config, remote=False), 4)
  here.close()
  there = _state(tmp_path / "b", config, remote=True, attempts=3)
  slot = there.actors[1]
  hire = slot._hire

  def hire_in_vain():
    hire()
    import ray

    handle = slot._handle
    threading.Timer(0.2, ray.kill, [handle]).start()

  def begin(index):
    if index == 2:
      slot._hire = hire_in_vain
      _kill(slot)
    elif index == 3:
      slot._hire = hire

  assert _rounds(there, 4, begin) == wanted
  said = capfd.readouterr().err
  assert "3 actors of slot 1 were lost" in said
  there.close()


@pytest.mark.slow
def test_a_silent_actor_ends_the_run_with_a_checkpoint(
  ray_here, tmp_path, capfd
):
  """A message names it; then the learner plays for it, and is told to stop."""
  config = _config()
  wanted = _rounds(here := _state(tmp_path / "a", config, remote=False), 3)
  here.close()
  there = _state(tmp_path / "b", config, remote=True)
  slot, stop = there.actors[0], there.actors[0]._office.stop

  def freeze(index):
    if index == 2:
      assert not stop.asked
      slot._office.call_patience = waiting.Patience(tell=1.0, give_up=3.0)
      os.kill(slot.process, signal.SIGSTOP)

  start = time.monotonic()
  process = slot.process
  assert _rounds(there, 3, freeze) == wanted
  assert stop.asked and time.monotonic() - start < 120
  said = capfd.readouterr().err
  assert f"s for slot 0 (process {process}" in said
  assert "stops with a checkpoint" in said
  os.kill(process, signal.SIGCONT)
  there.close()
