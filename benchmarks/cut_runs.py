"""Runs that are cut again and again, and must end as if they had not been.

Each configuration is trained once without a cut. Then the same command is
started, hit by a signal while it plays, learns, makes a checkpoint or exports,
and started again; after some hits it may end. It must go on at its newest
checkpoint each time: beginning anew would lead to the same end, too. Its
fingerprint, that of weights, optimizer, replay, environments, counters and
generators, and its metrics must be those of the run without a cut.
"""

import collections
import pathlib
import random
import re
import shutil
import signal
import tempfile
import time
from typing import Any, Counter, Dict, List, NamedTuple

import attacked
from pieces import Found, Known
from served import Row

CONFIGURATIONS: Dict[str, Dict[str, Any]] = {
  "CartPole, prioritised": dict(env="CartPole-v1", replay__prioritized=True),
  "MinAtar, prioritised, two actors": dict(
    env="MinAtar/Breakout", replay__prioritized=True, system__actors=2
  ),
  "Pong, prioritised": dict(
    env="Pong", environment__num_envs=2, replay__prioritized=True
  ),
  # Whole rounds of updates in one XLA loop, as small networks have by default.
  "CartPole, XLA": dict(
    env="CartPole-v1", replay__prioritized=True, system__xla="auto"
  ),
  "CartPole, Rainbow (noisy)": dict(env="CartPole-v1", agent="rainbow"),
  "MinAtar, IQN": dict(env="MinAtar/Breakout", agent="iqn"),
  "CartPole, FQF": dict(env="CartPole-v1", agent="fqf"),
  "MinAtar, Munchausen": dict(
    env="MinAtar/Breakout", agent__munchausen=True, agent__n_step=1
  ),
}
_HITS = 8  # on a run, before it may end

# Phase -> how often it may begin before the hit, and for how many seconds it
# goes on at most until then.
_MOMENTS = {
  "playing": (24, 0.03),
  "learning": (12, 0.03),
  "checkpointing": (3, 0.06),
  "exporting": (1, 0.8),
}
_SECONDS = 30.0  # from SIGTERM to the end, at most


class _Hit(NamedTuple):
  """What came of a signal.

  Attributes:
    phases: that were under way.
    outcome: of the process.
    seconds: until it ended, without those in which it waited for a CPU.
    went_on: whether it began where the run had got to before.
  """

  phases: List[str]
  outcome: attacked.Outcome
  seconds: float
  went_on: bool


class _Tally:
  """What is counted over all runs of an attack."""

  def __init__(self):
    self.hits = self.lost = self.silent = self.tracebacks = 0
    self.slowest = 0.0
    self.phases: Counter[str] = collections.Counter()
    self.names: Counter[str] = collections.Counter()

  def add(self, other: Dict[str, Any]) -> None:
    """Adds what was counted over other runs, the `vars` of a tally."""
    for name, value in other.items():
      if name == "slowest":
        self.slowest = max(self.slowest, value)
      elif isinstance(value, dict):
        getattr(self, name).update(value)
      else:
        setattr(self, name, getattr(self, name) + value)


class _CutRun:
  """A configuration, its run without a cut, and one that is cut."""

  def __init__(self, name: str, folder: pathlib.Path, wanted: str):
    self.name = name
    self.path = folder / "cut"
    self._reached = 0  # the newest checkpoint that any look has found
    self._log = folder / "log"
    self._wanted = wanted

  def start(self, marks: attacked.Marks) -> attacked.Command:
    words = attacked.train(self.path, **CONFIGURATIONS[self.name])
    return attacked.Command(words, self._log, marks.install)

  def look(self) -> None:
    """Remembers the newest checkpoint; no later look may find an older one."""
    self._reached = max(self._reached, attacked.newest(self.path))

  def went_on(self, done: attacked.Outcome, *, began: bool) -> bool:
    """Whether a command kept what there was, and went on from there.

    Args:
      done: how it ended.
      began: whether it got as far as to play.
    """
    wanted = self._reached
    self.look()
    if attacked.newest(self.path) < self._reached:
      return False
    return not began or began_at(done) >= wanted

  def finish(self, tally: _Tally) -> None:
    """Lets it end, and compares."""
    done = self.start(attacked.Marks()).end()
    tally.tracebacks += done.traceback
    went_on = self.went_on(done, began=True)
    if done.code != 0 or "passed over" in done.errors or not went_on:
      tally.lost += 1
      attacked.complain(f"{self.name} did not go on", done)
    elif attacked.fingerprint(self.path, self._log) != self._wanted:
      tally.silent += 1
      attacked.complain(f"{self.name} ended otherwise", done)
    shutil.rmtree(self.path, ignore_errors=True)
    self._reached = 0


def began_at(done: attacked.Outcome) -> int:
  """The step at which a command says that its run goes on, or 0."""
  found = re.search(r"(?:goes on|it is) at step ([\d,]+) of", done.errors)
  return int(found[1].replace(",", "")) if found else 0


def _hit(
  run: _CutRun,
  phase: str,
  number: int,
  chance: random.Random,
) -> _Hit:
  """Sends a signal to a run at a random moment of a phase."""
  run.look()
  marks = attacked.Marks()
  command = run.start(marks)
  often, duration = _MOMENTS[phase]
  begins = chance.randint(1, often)
  command.until(
    lambda: marks.count(phase) >= begins and phase in marks.now(), 3600
  )
  time.sleep(chance.uniform(0, duration))
  start, before = time.monotonic(), command.starved()
  phases = marks.now()
  command.send(number)
  starved = before
  while command.running():
    starved = max(starved, command.starved())
    time.sleep(0.01)
  outcome = command.end()
  if number == signal.SIGKILL:
    phases = marks.now()  # as they were at its death
  seconds = time.monotonic() - start - (starved - before)
  began = marks.count("playing") > 0
  return _Hit(phases, outcome, seconds, run.went_on(outcome, began=began))


def _judge(hit: _Hit, number: int, run: _CutRun, tally: _Tally) -> None:
  """Counts a signal that was in time, and what went wrong with it."""
  done = hit.outcome
  tally.tracebacks += done.traceback
  if done.code == 0:
    return  # the run was faster
  tally.hits += 1
  tally.names[run.name] += 1
  tally.phases.update(hit.phases or ["between these"])
  good = done.code == -signal.SIGKILL
  if number == signal.SIGTERM:
    tally.slowest = max(tally.slowest, hit.seconds)
    good = done.code == 75 and hit.seconds < _SECONDS
    # A checkpoint of the very step, not only one from before.
    stopped = f"stopped at step {attacked.newest(run.path):,};"
    good = good and stopped in done.shown + done.errors
  if not good or not hit.went_on or "passed over" in done.errors:
    tally.lost += 1
    attacked.complain(f"{run.name} while {hit.phases}", done)


def _whole(name: str, folder: pathlib.Path) -> str:
  """The fingerprint of a run without a cut."""
  path, log = folder / "whole", folder / "log"
  done = attacked.run(attacked.train(path, **CONFIGURATIONS[name]), log)
  if done.code != 0:
    raise RuntimeError(f"the run without a cut failed: {done}")
  wanted = attacked.wanted_fingerprint(path, log)
  shutil.rmtree(path)
  return wanted


def _turn(run: _CutRun, number: int, hits: int, turn: int, seed: int) -> _Tally:
  """Hits a run so often, which then ends; others, if it was faster."""
  tally, chance = _Tally(), random.Random(f"{seed} {turn}")
  tries = 0
  while tally.hits < hits and tries < 4 * hits:
    phase = attacked.PHASES[(turn + tries) % len(attacked.PHASES)]
    tries += 1
    found = _hit(run, phase, number, chance)
    _judge(found, number, run, tally)
    if found.outcome.code == 0 and tally.hits < hits:
      run.finish(tally)  # a hit of it may follow on another
  run.finish(tally)
  return tally


def _attack(number: int, wanted: int, seed: int, known: Known) -> Found:
  """One turn after the other; each is a configuration's, in a row."""
  names, hits, turn = list(CONFIGURATIONS), 0, 0
  while hits < wanted:
    name, share = names[turn % len(names)], min(_HITS, wanted - hits)
    if wanted < _HITS * len(names):  # of each one at least
      share = min(max(1, wanted // len(names)), share)
    key = f"{turn} {name}"
    with tempfile.TemporaryDirectory() as place:
      folder = pathlib.Path(place)
      if key not in known and name not in known:
        yield name, _whole(name, folder)
      if key not in known:
        run = _CutRun(name, folder, known[name])
        yield key, vars(_turn(run, number, share, turn, seed))
    hits += share
    turn += 1
    attacked.progress("cut", hits - 1, wanted, name)


def killed(number: int, seed: int, known: Known) -> Found:
  """Sends SIGKILL that many times."""
  return _attack(signal.SIGKILL, number, seed, known)


def stopped(number: int, seed: int, known: Known) -> Found:
  """Sends SIGTERM that many times."""
  return _attack(signal.SIGTERM, number, seed, known)


def row(known: Known, *, was_killed: bool) -> Row:
  """The table's line of all turns."""
  tally = _Tally()
  for result in known.values():
    if isinstance(result, dict):
      tally.add(result)
  landed = ", ".join(f"{p} {tally.phases[p]}" for p in sorted(tally.phases))
  notes = [f"hit while {landed}"]
  if not was_killed:
    notes.append(
      f"the slowest ended after {tally.slowest:.1f} s, without waiting for CPUs"
    )
  notes += [f"{name}: {tally.names[name]}" for name in sorted(tally.names)]
  return Row(
    "runs killed, then the same fingerprint"
    if was_killed
    else "SIGTERM, a checkpoint within 30 s",
    tally.hits,
    tally.lost,
    tally.silent,
    tally.tracebacks,
    "\n  ".join(notes),
  )
