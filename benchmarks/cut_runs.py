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
    seconds: until it ended.
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


class _CutRun:
  """A configuration, its run without a cut, and one that is cut."""

  def __init__(self, name: str, folder: pathlib.Path):
    self.name = name
    self.path = folder / "cut"
    self._reached = 0  # the newest checkpoint that any look has found
    self._log = folder / "log"
    whole = folder / "whole"
    words = attacked.train(whole, **CONFIGURATIONS[name])
    done = attacked.run(words, self._log)
    if done.code != 0:
      raise RuntimeError(f"the run without a cut failed: {done}")
    self._wanted = attacked.fingerprint(whole, self._log)
    shutil.rmtree(whole)

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
    lambda: marks.count(phase) >= begins and phase in marks.now(), 300
  )
  time.sleep(chance.uniform(0, duration))
  start = time.monotonic()
  phases = marks.now()
  command.send(number)
  outcome = command.end()
  if number == signal.SIGKILL:
    phases = marks.now()  # as they were at its death
  seconds = time.monotonic() - start
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


def _attack(
  number: int, wanted: int, tally: _Tally, seed: int, minutes: float
) -> None:
  chance, end = random.Random(seed), time.monotonic() + 60 * minutes
  per_run = max(1, min(_HITS, wanted // len(CONFIGURATIONS)))
  names = list(CONFIGURATIONS)
  with tempfile.TemporaryDirectory() as folder:
    runs: Dict[str, _CutRun] = {}
    turn = 0
    while tally.hits < wanted and time.monotonic() < end:
      name = names[turn % len(names)]
      if name not in runs:
        place = pathlib.Path(folder, str(turn))
        place.mkdir()
        runs[name] = _CutRun(name, place)
      for hit in range(min(per_run, wanted - tally.hits)):
        phase = attacked.PHASES[(turn + hit) % len(attacked.PHASES)]
        found = _hit(runs[name], phase, number, chance)
        _judge(found, number, runs[name], tally)
        text = f"{name}: {', '.join(found.phases)}"
        attacked.progress("cut", tally.hits - 1, wanted, text)
        if found.outcome.code == 0:
          break
      runs[name].finish(tally)
      turn += 1


def _row(what: str, tally: _Tally, *notes: str) -> Row:
  for name, times in sorted(tally.names.items()):
    notes += (f"{name}: {times}",)
  landed = ", ".join(f"{p} {tally.phases[p]}" for p in sorted(tally.phases))
  return Row(
    what,
    tally.hits,
    tally.lost,
    tally.silent,
    tally.tracebacks,
    "\n  ".join([f"hit while {landed}", *notes]),
  )


def killed(number: int, seed: int, minutes: float) -> List[Row]:
  """Sends SIGKILL that many times; no run is begun after these minutes."""
  tally = _Tally()
  _attack(signal.SIGKILL, number, tally, seed, minutes)
  return [_row("runs killed, then the same fingerprint", tally)]


def stopped(number: int, seed: int, minutes: float) -> List[Row]:
  """Sends SIGTERM that many times; no run is begun after these minutes."""
  tally = _Tally()
  _attack(signal.SIGTERM, number, tally, seed, minutes)
  note = f"the slowest ended after {tally.slowest:.1f} s"
  return [_row("SIGTERM, a checkpoint within 30 s", tally, note)]
