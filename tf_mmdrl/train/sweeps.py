"""Many runs with one command: games x agents x seeds, resumable.

Each run is a process of its own, so that a run that fails does not stop the
others. Finished runs are listed in `sweep.csv`; the same command goes on with
those that are not.
"""

import concurrent.futures
import csv
import enum
import itertools
import os
import pathlib
import signal
import threading
import time
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
)

from tf_mmdrl.core import errors, run_files, score_text
from tf_mmdrl.train import run_process

_TABLE = "sweep.csv"
# Below what a terminal shows of Ctrl-C.
STOPPING = "\nstopping; what is under way saves a checkpoint first"


class Job(NamedTuple):
  """One run of a sweep.

  Attributes:
    environment: the game.
    agent: the algorithm.
    seed: the seed of everything.
    directory: the directory of the run.
    arguments: the arguments of `mmdrl train`.
  """

  environment: str
  agent: str
  seed: int
  directory: pathlib.Path
  arguments: Sequence[str]

  @property
  def name(self) -> str:
    """What to call it."""
    return f"{self.environment} {self.agent} seed {self.seed}"

  @property
  def log(self) -> pathlib.Path:
    """Where its output goes, beside the run."""
    return self.directory.with_suffix(".log")


Start = Callable[[Job], Any]


class Row(NamedTuple):
  """The result of a finished run, a line of `sweep.csv`."""

  environment: str
  agent: str
  seed: int
  evaluation_score: float
  best_score: float
  minutes: float
  arguments: str


class Outcome(NamedTuple):
  """How many runs did not finish, and why."""

  stopped: int
  failed: int


def plan(
  directory: pathlib.Path,
  environments: Sequence[str],
  seeds: Sequence[int],
  agents: Mapping[str, Sequence[str]],
) -> List[Job]:
  """The runs, seed by seed, so that a sweep cut short has all games and agents.

  Args:
    directory: the directory of the sweep.
    environments: the games.
    seeds: the seeds of the runs.
    agents: algorithm -> arguments of `mmdrl train`.

  Returns:
    A job for each game, algorithm and seed.
  """
  jobs = []
  for seed, game, agent in itertools.product(seeds, environments, agents):
    path = directory / game.replace("/", "-") / agent / f"seed{seed}"
    own = ["--env", game, "--agent", agent, "--seed", str(seed)]
    jobs.append(Job(game, agent, seed, path, [*own, *agents[agent]]))
  return jobs


def finished(directory: pathlib.Path) -> List[Row]:
  """The newest row of each run in `sweep.csv`, if there is one."""
  path = directory / _TABLE
  if not path.exists():
    return []
  rows: Dict[tuple, Row] = {}
  with path.open(newline="") as file:
    for line, row in enumerate(csv.DictReader(file), start=2):
      try:
        typed: Dict[str, object] = dict(row, seed=int(row["seed"]))
        for name in ("evaluation_score", "best_score", "minutes"):
          typed[name] = float(row[name])
        new = Row(**typed)  # type: ignore[arg-type]
        # A sweep with more --steps goes on with finished runs.
        rows.pop(new[:3], None)
        rows[new[:3]] = new
      except (KeyError, TypeError, ValueError):
        raise errors.UserError(
          f"line {line} of {str(path)!r} is no row of a sweep; remove the line"
          " or the file, and the run it stood for is looked at again"
        ) from None
  return list(rows.values())


def run(
  jobs: Sequence[Job],
  directory: pathlib.Path,
  *,
  at_once: int,
  show: Callable[[str], None],
  start: Optional[Start] = None,
) -> Outcome:
  """Runs what is not finished.

  Args:
    jobs: what `plan` gave.
    directory: the directory of the sweep.
    at_once: runs at the same time; each gets its share of the cores.
    show: told of each run's beginning and end.
    start: begins a run, if not as a process of this machine; what it returns
      has `wait` and `stop`.

  Returns:
    How many were told to stop, and how many failed.
  """
  directory.mkdir(parents=True, exist_ok=True)
  done = {
    (row.environment, row.agent, row.seed, row.arguments)
    for row in finished(directory)
  }
  left = [
    job
    for job in jobs
    if (job.environment, job.agent, job.seed, " ".join(job.arguments))
    not in done
  ]
  if len(left) < len(jobs):
    show(f"{len(jobs) - len(left)} of {len(jobs)} runs are finished already")
  done_before = len(jobs) - len(left)
  sweep = _Sweep(directory, at_once, show, done_before, len(jobs), start)
  # A signal to stop is Ctrl-C's: it reaches the runs, which save themselves.
  before = signal.signal(signal.SIGTERM, signal.default_int_handler)
  try:
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
      try:
        ends = in_threads(pool, sweep.run, left)
      except KeyboardInterrupt:
        show(STOPPING)
        sweep.stop()
        ends = []
      except BaseException:  # said now, not when all others have ended
        sweep.stop()
        raise
    if ends or not left:
      return Outcome(ends.count(_End.STOPPED), ends.count(_End.FAILED))
    return Outcome(stopped=sweep.unfinished, failed=0)
  finally:
    signal.signal(signal.SIGTERM, before)


def in_threads(
  pool: concurrent.futures.Executor,
  function: Callable[[Any], Any],
  values: Iterable[Any],
) -> List[Any]:
  """What a function makes of each value; raises as soon as one call does."""
  calls = [pool.submit(function, value) for value in values]
  done, _ = concurrent.futures.wait(
    calls, return_when=concurrent.futures.FIRST_EXCEPTION
  )
  for call in done:
    call.result()
  return [call.result() for call in calls]


class _End(enum.Enum):
  FINISHED = 0
  STOPPED = 1
  FAILED = 2


class _Sweep:
  """Runs jobs in processes, and writes down how they ended."""

  def __init__(
    self,
    directory: pathlib.Path,
    at_once: int,
    show: Callable[[str], None],
    done: int,
    total: int,
    start: Optional[Start] = None,
  ):
    self._directory = directory
    self._start = start or self._start_here
    self._began, self._done_before = time.monotonic(), done
    self._threads = max(1, (os.cpu_count() or 1) // at_once)
    self._show = show
    self._done, self._total = done, total
    self._lock = threading.Lock()
    self._processes: List[Any] = []
    self._stopped = False

  def stop(self) -> None:
    """Tells all runs to stop; they write a checkpoint first."""
    self._stopped = True
    for process in self._processes:
      process.stop()

  @property
  def unfinished(self) -> int:
    """How many runs have not come to their end."""
    return self._total - self._done

  def run(self, job: Job) -> _End:
    """Runs a job to its end."""
    if self._stopped:
      return _End.STOPPED
    self._show(f"{job.name}: begins; see {job.log}")
    start = time.monotonic()
    process = self._start(job)
    self._processes.append(process)
    if self._stopped:
      process.stop()
    code = process.wait()
    minutes = (time.monotonic() - start) / 60
    with self._lock:
      return self._end(job, code, minutes)

  def _start_here(self, job: Job) -> run_process.RunProcess:
    return run_process.RunProcess(
      job.arguments, job.directory, job.log, threads=self._threads
    )

  def _end(self, job: Job, code: Optional[int], minutes: float) -> _End:
    if code in run_process.STOPPED:
      self._show(f"{job.name}: stopped")
      return _End.STOPPED
    if code:
      self._show(f"{job.name}: failed: {run_process.reason(code, job.log)}")
      return _End.FAILED
    rows = run_files.RunFiles(job.directory).rows()
    column = [row["evaluation_score"] for row in rows]
    scores = [score for score in column if score is not None]
    row = Row(
      *(job.environment, job.agent, job.seed, scores[-1], max(scores)),
      *(round(minutes, 2), " ".join(job.arguments)),
    )
    _append(self._directory / _TABLE, row)
    self._done += 1
    last, best = map(score_text.number, (scores[-1], max(scores)))
    self._show(
      f"[{self._done}/{self._total}] {job.name}: {last},"
      f" best {best}, {minutes:.1f} min{self._time_left()}"
    )
    return _End.FINISHED

  def _time_left(self) -> str:
    """Of all runs, as those that have ended here took."""
    left = self._total - self._done
    if not left:
      return ""
    passed = time.monotonic() - self._began
    rate = passed / (self._done - self._done_before)
    return f"; about {left * rate / 60:.0f} min left"


def table(rows: Sequence[Row]) -> List[List[str]]:
  """Cells: the mean score of each game and agent, over its seeds."""
  agents = list(dict.fromkeys(row.agent for row in rows))
  games = list(dict.fromkeys(row.environment for row in rows))
  return [
    ["game", *agents],
    *([game, *(_cell(rows, game, a) for a in agents)] for game in games),
  ]


def _cell(rows: Sequence[Row], game: str, agent: str) -> str:
  scores = [
    row.evaluation_score
    for row in rows
    if (row.environment, row.agent) == (game, agent)
  ]
  mean: Optional[float] = sum(scores) / len(scores) if scores else None
  return score_text.number(mean)


def _append(path: pathlib.Path, row: Row) -> None:
  new = not path.exists()
  with path.open("a", newline="") as file:
    writer = csv.writer(file)
    if new:
      writer.writerow(Row._fields)
    writer.writerow(row)
