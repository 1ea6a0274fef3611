"""Hyperparameter search by Optuna: trials of runs, pruned by the median.

A trial is one choice of settings, trained with each seed in turn. Its value is
the mean score of the last half of each run's evaluations, over the seeds. At
every evaluation it is compared with the trials before it at the same evaluation
of the same seed, and stopped if its best score so far is below their median.

Everything is on disk before it counts: choices and scores in `search.db`, runs
in directories of their own. A search that was killed goes on with the trials
that were under way, and these go on with their runs.
"""

import concurrent.futures
import logging
import pathlib
import signal
import threading
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from tf_mmdrl.cluster import search_lock
from tf_mmdrl.cluster.search_space import Search
from tf_mmdrl.core import errors, optional, run_files
from tf_mmdrl.train import run_process, sweeps

_STORAGE = "search.db"
_FULL_TRIALS = 4  # that no median stops, to have one
_LOOK = 0.5  # seconds between two looks at the scores of a run

Start = Callable[[Sequence[str], pathlib.Path, pathlib.Path], Any]


class Plan(NamedTuple):
  """A search.

  Attributes:
    directory: of all its runs.
    arguments: of `mmdrl train` in every run.
    searches: the settings that are chosen.
    seeds: each choice is trained with.
    trials: how many choices.
    steps: of a run, for the share that was saved.
    seed: of the choices.
  """

  directory: pathlib.Path
  arguments: Sequence[str]
  searches: Sequence[Search]
  seeds: Sequence[int]
  trials: int
  steps: int
  seed: int = 0


class Trial(NamedTuple):
  """What is known of a trial.

  Attributes:
    number: from 0.
    state: "complete", "pruned", "failed" or "running".
    value: the score, if it is complete.
    settings: its own, as `--set` takes them.
    steps: that were trained, over its seeds.
  """

  number: int
  state: str
  value: Optional[float]
  settings: Sequence[str]
  steps: int


def require_optuna() -> Any:
  """Optuna, without its log."""
  optuna = optional.require("optuna", use="searches", extra="tune")
  optuna.logging.set_verbosity(logging.ERROR)
  return optuna


def open_study(plan: Plan) -> Any:
  """The study in the directory; made, or gone on with."""
  optuna = require_optuna()
  plan.directory.mkdir(parents=True, exist_ok=True)
  storage = plan.directory / _STORAGE
  try:
    study = optuna.create_study(
      storage=f"sqlite:///{storage}",
      study_name="mmdrl",
      direction="maximize",
      load_if_exists=True,
      pruner=optuna.pruners.MedianPruner(n_startup_trials=_FULL_TRIALS),
    )
  except Exception as error:  # of SQLite, its wrappers and Optuna
    line = str(error).strip().splitlines()[0]
    raise errors.UserError(
      f"the search in {str(storage)!r} cannot be read or written: {line}; pass"
      " another --run-dir"
    ) from error
  wanted = {
    "arguments": list(plan.arguments),
    "searches": [repr(search) for search in plan.searches],
    "seeds": list(plan.seeds),
    "seed": plan.seed,
  }
  before = study.user_attrs.get("plan", wanted)
  for name, value in wanted.items():
    if before[name] != value:
      raise errors.UserError(
        f"{str(plan.directory)!r} holds a search with other {name}:"
        f" {before[name]} -> {value}; pass the same, or another --run-dir"
      )
  study.set_user_attr("plan", wanted)
  return study


def run(
  plan: Plan,
  *,
  at_once: int,
  start: Start,
  show: Callable[[str], None],
) -> bool:
  """Runs the trials that are left.

  Args:
    plan: the search.
    at_once: trials at the same time.
    start: begins a run from its arguments, directory and log; what it returns
      has `poll`, `wait` and `stop`.
    show: told of each trial's beginning and end.

  Returns:
    Whether all are over; False if it or a run of it was told to stop.
  """
  with search_lock.alone(plan.directory):
    return _run(_Searching(plan, open_study(plan), start, show), at_once)


def _run(searching: "_Searching", at_once: int) -> bool:
  before = signal.signal(signal.SIGTERM, signal.default_int_handler)
  try:
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
      try:
        sweeps.in_threads(pool, lambda _: searching.work(), range(at_once))
      except BaseException as error:
        searching.stopped.set()
        if isinstance(error, KeyboardInterrupt):
          searching.show(sweeps.STOPPING)
          return False
        raise
  finally:
    signal.signal(signal.SIGTERM, before)
  return not searching.left_open


class _Searching:
  """Takes trials one after the other, in several threads."""

  def __init__(self, plan: Plan, study: Any, start: Start, show):
    self._plan = plan
    self._study = study
    self._start = start
    self.show = show
    self._lock = threading.Lock()
    # Those that were under way when a search was killed come first.
    self._cut: List[Any] = [
      trial for trial in study.trials if not trial.state.is_finished()
    ]
    self.stopped = threading.Event()
    self.left_open = False  # a trial, whose run somebody stopped

  def work(self) -> None:
    """Runs trials until none is left."""
    while not self.stopped.is_set():
      trial = self._next()
      if trial is None:
        return
      self._run(trial)

  def _next(self) -> Any:
    optuna = require_optuna()
    with self._lock:
      if self._cut:
        trial = optuna.trial.Trial(self._study, self._cut.pop(0)._trial_id)
      elif len(self._study.trials) >= self._plan.trials:
        return None
      else:
        # By the number, so that a search that was cut chooses the same.
        number = len(self._study.trials)
        seed = self._plan.seed * 100_003 + number
        self._study.sampler = optuna.samplers.TPESampler(seed=seed)
        trial = self._study.ask()
      for search in self._plan.searches:
        search.suggest(trial)
    return trial

  def _run(self, trial: Any) -> None:
    optuna = require_optuna()
    chosen = [f"{s.name}={s.suggest(trial)}" for s in self._plan.searches]
    self.show(f"trial {trial.number}: {' '.join(chosen)}")
    values = []
    for index, seed in enumerate(self._plan.seeds):
      place = self._plan.directory / f"trial{trial.number:04d}"
      run = _Run(place / f"seed{seed}", seed, index)
      code = self._train(run, trial, chosen)
      if self.stopped.is_set():
        return  # the same command goes on with it
      if code is None:
        self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        self.show(f"trial {trial.number}: stopped early, below the median")
        return
      if code in run_process.STOPPED:
        # With a checkpoint: it stays "running", and the next search has it.
        self.left_open = True
        self.show(f"trial {trial.number}: stopped")
        return
      if code:
        self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        last = run_process.reason(code, run.log)
        self.show(f"trial {trial.number}: failed: {last}")
        return
      values.append(score(run_files.RunFiles(run.directory).rows()))
    value = sum(values) / len(values)
    self._study.tell(trial, value)
    self.show(f"trial {trial.number}: {value:.2f}")

  def _train(
    self, run: "_Run", trial: Any, chosen: Sequence[str]
  ) -> Optional[int]:
    """Its exit code; None if it was stopped early."""
    arguments = [*self._plan.arguments, "--seed", str(run.seed)]
    for setting in chosen:
      arguments += ["--set", setting]
    process = self._start(arguments, run.directory, run.log)
    code = None
    while code is None:
      code = process.wait(_LOOK)
      if self._falls_behind(run, trial):
        process.stop()
        process.wait()
        return None
      if self.stopped.is_set():
        process.stop()
        return process.wait()
    return code

  def _falls_behind(self, run: "_Run", trial: Any) -> bool:
    """Reports evaluations that are new; whether one is below the median."""
    scores = evaluations(run_files.RunFiles(run.directory))
    if run.reported == len(scores):
      return False
    known = self._study.trials[trial.number].intermediate_values
    for evaluation in range(run.reported, len(scores)):
      step = run.index * 10_000 + evaluation
      if step not in known:  # before the search was killed
        trial.report(scores[evaluation], step)
      run.reported = evaluation + 1
      if trial.should_prune():
        return True
    return False


class _Run:
  """A run of a trial; `reported` of its evaluations are known to Optuna."""

  def __init__(self, directory: pathlib.Path, seed: int, index: int):
    self.directory = directory
    self.log = directory.with_suffix(".log")
    self.seed = seed
    self.index = index
    self.reported = 0


def evaluations(files: run_files.RunFiles) -> List[float]:
  """The scores of a run's evaluations so far."""
  if not files.metrics.exists():
    return []
  column = (row["evaluation_score"] for row in files.rows())
  return [score for score in column if score is not None]


def score(rows: Sequence[run_files.Row]) -> float:
  """The mean of the last half of the evaluations, at least one."""
  column = [row["evaluation_score"] for row in rows]
  scores = [score for score in column if score is not None]
  last = scores[len(scores) // 2 :]
  return sum(last) / len(last)


def trials(plan: Plan) -> List[Trial]:
  """All trials so far, in the order in which they began."""
  found = []
  for trial in open_study(plan).trials:
    settings = [
      f"{search.name}={search.suggest(_Again(trial.params))}"
      for search in plan.searches
      if search.name in trial.params
    ]
    place = plan.directory / f"trial{trial.number:04d}"
    steps = sum(_steps(place / f"seed{seed}") for seed in plan.seeds)
    state = trial.state.name.lower().replace("fail", "failed")
    found.append(Trial(trial.number, state, trial.value, settings, steps))
  return found


def saved(plan: Plan, found: Sequence[Trial]) -> float:
  """The share of the steps that early stops have saved."""
  over = [trial for trial in found if trial.state in ("complete", "pruned")]
  whole = len(over) * len(plan.seeds) * plan.steps
  return 1 - sum(trial.steps for trial in over) / whole if whole else 0.0


def best(found: Sequence[Trial]) -> Optional[Trial]:
  """The complete trial with the largest value; the first of equal ones."""
  complete = [t for t in found if t.state == "complete" and t.value is not None]
  values = [trial.value for trial in complete if trial.value is not None]
  return complete[values.index(max(values))] if values else None


class _Again:
  """Says again what a trial chose, as Optuna's trials do."""

  def __init__(self, chosen: Any):
    self._chosen = chosen

  def _say(self, name: str, *_: Any, **__: Any) -> Any:
    return self._chosen[name]

  suggest_float = suggest_int = suggest_categorical = _say


def _steps(directory: pathlib.Path) -> int:
  files = run_files.RunFiles(directory)
  rows = files.rows() if files.metrics.exists() else []
  return int(run_files.last(rows, "step") or 0)
