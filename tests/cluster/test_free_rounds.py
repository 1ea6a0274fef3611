"""Who may keep a run in free order waiting, and for how long.

Slots and the parts of a run are scripts here, so that one is late when a test
wants it.
"""

import types

import pytest
import train_fixtures

from tf_mmdrl.cluster import free_order, waiting
from tf_mmdrl.train import stopping

_STEPS = 8  # of a chunk


class _Run:
  """Counts steps and updates."""

  def __init__(self, path):
    self.config = train_fixtures.small(
      "system.actors=2", "system.order=free", "system.staleness=2"
    )
    self.directory, self.slots = path, [0, 0]
    self.step = self.updates = 0
    no = lambda *_: None  # noqa: E731
    self.learner = types.SimpleNamespace(weights=object, learn=self._learn)
    self.experience = types.SimpleNamespace(prepare=no, take=no, learnt=no)
    self.metrics = types.SimpleNamespace(add_loss=no)

  def _learn(self, *_):
    self.updates += self.config.round_updates
    return types.SimpleNamespace(losses=None, loss=1.0)

  def receive(self, slot, chunk, where):
    self.slots[slot] = where
    self.step += chunk.num_steps


class _Reference:
  """Of a call under way."""

  def __init__(self, slot):
    self.slot = slot


class _Slot:
  """Answers at once, unless it is suspended."""

  def __init__(self, name):
    self.name, self.is_suspended, self.losses = name, False, []

  def submit(self, state, weights, num_steps):
    return _Reference(self)

  def receive(self, state, reference):
    return types.SimpleNamespace(num_steps=_STEPS), state + _STEPS

  def lose(self, why):
    self.losses.append(why)
    self.is_suspended = False  # another process takes over


def _wait(references, num_returns=1, timeout=None):
  ready = [one for one in references if not one.slot.is_suspended]
  return ready[:num_returns], []


@pytest.fixture
def made(monkeypatch, tmp_path):
  """Rounds of two slots, and what they are made of."""
  monkeypatch.setattr(free_order.ray, "wait", _wait)
  run, slots = _Run(tmp_path), [_Slot("one"), _Slot("two")]
  stop = stopping.Stop()

  def rounds(tell, give_up):
    patience = waiting.Patience(tell=tell, give_up=give_up)
    clock = lambda: waiting.Clock(patience, stop)  # noqa: E731
    return free_order.FreeRounds(run, slots, clock)

  return rounds, run, slots, stop


def test_a_suspended_actor_does_not_hold_up_the_others(made, capfd):
  rounds, run, slots, stop = made
  running = rounds(tell=0.05, give_up=60)
  while run.updates < 10 * run.config.round_updates:
    running.play_and_learn()
  slots[1].is_suspended = True
  before = run.updates
  while run.updates < before + 40 * run.config.round_updates:
    running.play_and_learn()
  running.close()
  assert slots[1].losses == ["does not answer"] and not slots[0].losses
  assert "for two" in capfd.readouterr().err
  assert not stop.asked
  # What the learner had of it counts, and it plays on from there.
  assert run.slots[1] > 0 and run.step == sum(run.slots)
  lines = (run.directory / "chunks.csv").read_text().splitlines()[1:]
  assert max(int(line.split(",")[3]) for line in lines) <= 2


def test_a_slow_actor_that_holds_up_nobody_is_let_be(made):
  """Before learning starts there is no credit that would wait for it."""
  rounds, run, slots, stop = made
  slots[0].is_suspended = slots[1].is_suspended = True
  running = rounds(tell=0.02, give_up=0.3)
  running.play_and_learn()
  running.close()
  assert stop.asked and not slots[0].losses and not slots[1].losses


def test_a_checkpoint_does_not_wait_for_a_suspended_actor(made):
  rounds, run, slots, stop = made
  running = rounds(tell=0.05, give_up=60)
  slots[1].is_suspended = True
  running.play_and_learn()
  running.play_and_learn()
  running.settle()
  running.close()
  assert slots[1].losses == ["does not answer"] and not slots[0].losses
  assert run.step == run.slots[0] and not stop.asked


def test_a_log_that_was_cut_goes_on_with_whole_lines(tmp_path):
  """Of what was learnt from: chunks after the checkpoint are played anew."""
  path, header = tmp_path / "chunks.csv", "step,slot,steps,staleness,updates\n"
  log = free_order.Log(path, 0)
  log.add(8, 0, 8, 0, 1)
  assert path.read_text() == header + "8,0,8,0,1\n"  # as a kill would leave it
  # What earlier versions left of two kills: a header twice, and half a line.
  path.write_text(header + "8,0,8,0,1\n16,1,8,0,2\n" + header + "24,0,8,0,3\n1")
  log = free_order.Log(path, 16)
  log.add(24, 1, 8, 1, 3)
  log.close()
  rows = "8,0,8,0,1\n16,1,8,0,2\n24,1,8,1,3\n"
  assert path.read_text() == header + rows
