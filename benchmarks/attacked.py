"""The `mmdrl` command as processes that can be attacked, many in a minute.

Importing TensorFlow takes longer than most attacks. It is imported here, once,
nothing is computed with it, and each command is a fork that calls the command
line's `main`: a process of its own, which can be killed as any other. So are
the other packages that commands import.
"""

import gc
import importlib
import json
import mmap
import os
import pathlib
import signal
import sys
import time
import traceback
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

from tf_mmdrl.cli import main as cli
from tf_mmdrl.cli import quiet

with quiet.loading():
  from tf_mmdrl.train import exporting, learner, run_state, trainer  # noqa: F401

  for _name in (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "tf_mmdrl.cli.evaluate_command",
    "tf_mmdrl.cli.inspect_command",
    "tf_mmdrl.cli.report_command",
    "tf_mmdrl.cli.train_command",
    "tf_mmdrl.report.assembly",
    "tf_mmdrl.report.page",
    "tf_mmdrl.report.run_results",
    "tf_mmdrl.train.playing",
    "tf_mmdrl.train.runs",
  ):
    importlib.import_module(_name)
# What is imported lives on: no fork need look through it for garbage.
gc.freeze()

PHASES = ("playing", "learning", "checkpointing", "exporting")

STEPS = 320

# A run of seconds, with everything that a run does.
_SMALL = {
  "environment.num_envs": 4,
  "environment.max_episode_steps": 50,
  "environment.rebuild_period": 256,
  "network.num_particles": 5,
  "replay.capacity": 256,  # less than all steps, so that old ones go
  "schedule.steps": STEPS,
  "schedule.learning_starts": 120,
  "schedule.collect_steps": 4,
  "schedule.epsilon_steps": 200,
  "schedule.target_period": 64,
  "schedule.batch_size": 8,
  "evaluation.period": 160,
  "evaluation.episodes": 4,
  "evaluation.num_envs": 2,
  "system.checkpoint_period": 64,
  "system.log_period": 80,
  "system.xla": "off",
}


def train(path: pathlib.Path, **settings: object) -> List[str]:
  """The words of `mmdrl train` for a short run.

  Args:
    path: of the run.
    **settings: changes, with two underscores for the point of their names;
      `env` and `agent` are the flags of those names.

  Returns:
    What follows `mmdrl`.
  """
  words = ["train", "--run-dir", str(path)]
  for flag in ("env", "agent"):
    if flag in settings:
      words += [f"--{flag}", str(settings.pop(flag))]
  changes = {n.replace("__", "."): v for n, v in settings.items()}
  for name, value in {**_SMALL, **changes}.items():
    words += ["--set", f"{name}={value}"]
  return words


class Marks:
  """What a run is doing, in memory that it shares with who attacks it."""

  def __init__(self):
    self._memory = mmap.mmap(-1, 2 * len(PHASES))

  def count(self, phase: str) -> int:
    """How often the phase has begun, at most 255."""
    return self._memory[2 * PHASES.index(phase) + 1]

  def now(self) -> List[str]:
    """The phases under way; playing and learning go on at the same time."""
    return [p for i, p in enumerate(PHASES) if self._memory[2 * i]]

  def install(self) -> None:
    """Marks the phases of the process that calls this."""
    for place, name, phase in (
      (run_state.RunState, "play", "playing"),
      (learner.Learner, "learn", "learning"),
      (run_state.RunState, "save", "checkpointing"),
      (exporting, "export", "exporting"),
    ):
      setattr(place, name, self._marked(getattr(place, name), phase))

  def _marked(self, function: Callable, phase: str) -> Callable:
    place, memory = 2 * PHASES.index(phase), self._memory

    def marked(*args, **kwargs):
      memory[place + 1] = min(255, memory[place + 1] + 1)
      memory[place] = 1
      try:
        return function(*args, **kwargs)
      finally:
        memory[place] = 0

    return marked


class Outcome(NamedTuple):
  """How a command ended.

  Attributes:
    code: its exit code, or the negative number of a signal.
    shown: its standard output.
    errors: its standard error.
  """

  code: int
  shown: str
  errors: str

  @property
  def said(self) -> List[str]:
    """The lines that are addressed to the user."""
    lines = self.errors.splitlines()
    return [line for line in lines if line.startswith("mmdrl: ")]

  @property
  def traceback(self) -> bool:
    """Whether a user would see one, or the process crashed."""
    crashed = self.code < 0 and -self.code not in (
      signal.SIGKILL,
      signal.SIGTERM,
    )
    return crashed or "Traceback" in self.errors + self.shown

  @property
  def refused(self) -> bool:
    """Whether it ended as mistakes do: one line that says why comes last."""
    last = self.errors.strip().splitlines()[-1:]
    return self.code == 2 and bool(last) and last[0] == (self.said or [""])[-1]


class Command:
  """A running `mmdrl`."""

  def __init__(
    self,
    words: Sequence[str],
    log: pathlib.Path,
    prepare: Callable[[], None] = lambda: None,
  ):
    """Starts it.

    Args:
      words: what follows `mmdrl`.
      log: where its output goes, with two endings.
      prepare: called in the new process first.
    """
    self._logs = [log.with_suffix(".out"), log.with_suffix(".err")]
    sys.stdout.flush()
    sys.stderr.flush()
    self.pid = os.fork()
    if self.pid == 0:
      _become(words, self._logs, prepare)
    self._code: Optional[int] = None

  def running(self) -> bool:
    """Whether it has not ended."""
    if self._code is None:
      done, status = os.waitpid(self.pid, os.WNOHANG)
      if done:
        self._code = os.waitstatus_to_exitcode(status)
    return self._code is None

  def until(self, condition: Callable[[], bool], seconds: float) -> bool:
    """Waits; whether the condition held while it ran."""
    end = time.monotonic() + seconds
    while self.running() and time.monotonic() < end:
      if condition():
        return True
      time.sleep(0.001)
    return False

  def sleeps(self) -> bool:
    """Whether all of its threads wait for something but a CPU."""
    tasks = pathlib.Path(f"/proc/{self.pid}/task").glob("*/stat")
    try:
      # After the name, which is in brackets, comes the state.
      ends = [task.read_text().rpartition(")")[2] for task in tasks]
    except OSError:  # a thread has just ended
      return False
    return all(end.split()[0] == "S" for end in ends)

  def starved(self) -> float:
    """Seconds for which its main thread was ready, and other processes ran."""
    if not self.running():
      return 0.0
    path = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/schedstat")
    return int(path.read_text().split()[1]) / 1e9

  def send(self, number: int) -> None:
    """Sends a signal, if it still runs."""
    if self.running():
      os.kill(self.pid, number)

  def end(self, seconds: float = 3600.0) -> Outcome:
    """Waits for its end, and forces it at last."""
    end = time.monotonic() + seconds
    while self.running():
      if time.monotonic() > end:
        self.send(signal.SIGKILL)
      time.sleep(0.005)
    assert self._code is not None
    shown, errors = (f.read_text(errors="replace") for f in self._logs)
    return Outcome(self._code, shown, errors)


def _become(
  words: Sequence[str],
  logs: Sequence[pathlib.Path],
  prepare: Callable[[], None],
) -> None:
  """Never returns."""
  code = 1
  try:
    for descriptor, path in enumerate(logs, 1):
      file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
      os.dup2(file, descriptor)
    # Also where a test has put something else in their place.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    prepare()
    code = cli.main(words)
  except SystemExit as error:
    code = error.code if isinstance(error.code, int) else 1
  except BaseException:
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(words: Sequence[str], log: pathlib.Path, **kwargs) -> Outcome:
  """A command from its start to its end."""
  return Command(words, log, **kwargs).end()


def fingerprint(path: pathlib.Path, log: pathlib.Path, *words: str) -> str:
  """Of the newest checkpoint and the metrics; empty if there is none."""
  done = run(["inspect", str(path), "--fingerprint", *words], log)
  if done.code != 0 or not (path / "metrics.csv").exists():
    return ""
  return json.dumps([done.shown, (path / "metrics.csv").read_text()])


def wanted_fingerprint(
  path: pathlib.Path, log: pathlib.Path, *words: str
) -> str:
  """That of a run that was not attacked, which must have one."""
  found = fingerprint(path, log, *words)
  if not found:
    raise RuntimeError(f"{path} has no fingerprint: {log.with_suffix('.err')}")
  return found


def newest(path: pathlib.Path) -> int:
  """The step of the newest checkpoint, 0 if there is none."""
  found = (path / "checkpoints").glob("0*")
  return max((int(checkpoint.name) for checkpoint in found), default=0)


def progress(what: str, index: int, number: int, text: str = "") -> None:
  """Shows where an attack is."""
  print(f"{what} {index + 1}/{number} {text}", file=sys.stderr, flush=True)


def complain(what: str, done: Optional[Outcome] = None) -> None:
  """Shows what went wrong, beside the table."""
  details: Dict[str, object] = done._asdict() if done else {}
  print(f"WRONG: {what} {details}", flush=True)
