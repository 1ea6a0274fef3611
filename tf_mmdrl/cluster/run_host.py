"""Runs of sweeps and searches on the machines of a cluster.

Each is a process `mmdrl train`, as on one machine, that a Ray actor starts and
watches. If its machine is lost, another one starts the same command again and
the run resumes exactly from its newest checkpoint: run directories are on a
path that all machines share, or with `collect` are fetched while runs go on,
and sent to where they go on.
"""

import os
import pathlib
import socket
import threading
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

import ray
from ray import exceptions

from tf_mmdrl.cluster import collected_run, own_place, run_copy
from tf_mmdrl.cluster.waiting import Clock
from tf_mmdrl.core import errors, exit_codes, full_disk, notices
from tf_mmdrl.train import run_process, versions

_ATTEMPTS = 10  # machines that a run may lose
_RECONNECT = 60.0  # seconds that a host may be out of reach
_ASK = 1.0  # seconds until it is asked again
PLACE = "mmdrl-run-"  # how a directory of a run's own begins
_RUN, _LOG = "run", "log"
_LOOK = 5.0  # seconds until it is looked whom a run waits for
_PING = 60.0  # seconds until a host is asked whether it is there
_CALLS = 100  # at once; those that lost their caller wait with the others


class RunHost:
  """Starts a run where it is placed; killed with it."""

  def __init__(self) -> None:
    self._process: Optional[run_process.RunProcess] = None
    self._place: Optional[own_place.OwnPlace] = None
    self._lock = threading.Lock()
    self._is_stopped = False

  @property
  def _own(self) -> pathlib.Path:
    """A directory of its own."""
    with self._lock:
      self._place = self._place or own_place.OwnPlace(PLACE)
      return self._place.path

  def run(
    self,
    arguments: Sequence[str],
    directory: Optional[str],
    log: Optional[str],
    threads: int,
  ) -> Optional[int]:
    """Runs to the end; the exit code. Called again, waits for the same run.

    Args:
      arguments: of `mmdrl train`, but for the directory.
      directory: of the run; None: one of its own.
      log: where its output is appended; None: a file of its own.
      threads: that it computes with.
    """
    where = pathlib.Path(directory) if directory else self._own / _RUN
    output = pathlib.Path(log) if log else self._own / _LOG
    with self._lock:
      if self._process is None:
        self._process = run_process.RunProcess(
          arguments,
          where,
          output,
          threads=threads,
          bound=True,
        )
        if self._is_stopped:
          self._process.stop()
    return self._process.wait()

  def stop(self) -> None:
    """Tells the run, once, to stop with a checkpoint."""
    with self._lock:
      if self._process is not None and not self._is_stopped:
        self._process.stop()
      self._is_stopped = True

  def hello(self) -> Dict[str, Any]:
    """Who this is; plain values, so that other versions understand it."""
    return {
      "host": socket.gethostname(),
      "process": os.getpid(),
      "versions": versions.found(),
    }

  def listing(self) -> run_copy.Listing:
    """The files of the run in its own directory."""
    return run_copy.listing(self._own / _RUN)

  def read(self, names: Sequence[str]) -> Dict[str, bytes]:
    """Contents of these files."""
    return run_copy.read(self._own / _RUN, names)

  def write(self, contents: Dict[str, bytes]) -> None:
    """Puts files there, before the run begins."""
    run_copy.write(self._own / _RUN, contents)

  def said(self, since: int) -> bytes:
    """What the run has written to its own log after so many bytes."""
    log = self._own / _LOG
    return log.read_bytes()[since:] if log.exists() else b""

  def clear(self) -> None:
    """Removes its own directory."""
    with self._lock:
      if self._place is not None:
        self._place.close()


class ClusterProcess:
  """A run somewhere in the cluster; as `run_process.RunProcess`."""

  def __init__(
    self,
    arguments: Sequence[str],
    directory: pathlib.Path,
    log: pathlib.Path,
    *,
    cpus: int,
    gpus: float = 0,
    collect: bool = False,
  ):
    """Starts it as soon as a machine has room.

    Args:
      arguments: of `mmdrl train`, but for the directory.
      directory: of the run, the same on all machines unless it is collected.
      log: where its output is appended.
      cpus: that it computes with.
      gpus: that it has.
      collect: whether machines do not see the directory, and its files travel.
    """
    kind: Any = ray.remote(RunHost)
    self._kind = kind.options(
      num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_concurrency=_CALLS
    )
    paths: List[Optional[str]] = [None, None]  # those of its machine
    if not collect:
      paths = [str(directory.resolve()), str(log.resolve())]
    self._call = (list(arguments), *paths, cpus)
    self._collected = (
      collected_run.Collected(directory, log) if collect else None
    )
    self._name, self._log = directory.name, log
    self._room = (cpus, gpus)
    self._lost = 0
    self._is_stopped = False
    self._asked = 0.0
    self._host: Any = None
    self._who = ""  # the host, for messages
    self._hello: Any = None  # answered once the host is there
    self._ping: Any = None  # answered while it is
    self._pinged = 0.0
    self._asked_for: Any = None
    self._is_begun = False  # the run, not only its host
    self._waits_for = ""
    self._clock = Clock()
    self._unreachable: Optional[float] = None  # since when
    self._code: Optional[int] = None
    self._begin()

  def poll(self) -> Optional[int]:
    """The exit code; None while it goes on."""
    return self.wait(0)

  def wait(self, seconds: Optional[float] = None) -> Optional[int]:
    """As `poll`, after its end or so many seconds."""
    end = None if seconds is None else time.monotonic() + seconds
    while self._code is None:
      left = None if end is None else max(0.0, end - time.monotonic())
      try:
        if ray.wait([self._asked_for], timeout=self._pause(left))[0]:
          self._answered(ray.get(self._asked_for))
        else:
          self._look()
          if left == 0:
            return self._code
          if self._collected is not None and self._is_begun:
            self._collected.fetch(self._host, at_once=False)
      except exceptions.RayTaskError as error:
        cause = getattr(error, "cause", None) or error
        if isinstance(cause, OSError):
          raise errors.UserError(
            f"{self._name} cannot be written where it is trained:"
            f" {full_disk.reason(cause)}; the same command goes on with it"
          ) from None
        raise cause from None
      except (exceptions.ActorUnavailableError, exceptions.GetTimeoutError):
        self._ask_again()
      except exceptions.RayError as error:
        _refuse_unmade(error)
        self._move()
    return self._code

  def stop(self) -> None:
    """Tells it to stop; it writes a checkpoint first."""
    self._is_stopped = True
    if ray.wait([self._hello], timeout=0)[0]:
      self._host.stop.remote()
    else:  # it may have to wait for room, perhaps for ever
      self._code = exit_codes.STOPPED
      ray.kill(self._host)

  def _pause(self, left: Optional[float]) -> float:
    """Seconds until there is something to do, at most."""
    pause = _LOOK if left is None else min(left, _LOOK)
    if self._collected is None:
      return pause
    return min(pause, collected_run.PERIOD)

  def _look(self) -> None:
    """Says whom the run waits for, if that is long; ends it at last."""
    waits_for = self._awaited()
    if waits_for != self._waits_for:
      self._waits_for, self._clock = waits_for, Clock()
    if not waits_for:
      return
    is_late = self._clock.is_late
    if is_late and self._is_begun and not self._is_stopped:
      self._move()
    elif is_late and (self._is_stopped or not _has_room(*self._room)):
      notices.warn(
        f"{self._name} has waited {self._clock.waited / 60:.0f} minutes for"
        f" {waits_for}, and stops; the same command goes on with it"
      )
      self._code = exit_codes.STOPPED
      ray.kill(self._host)
    else:  # other runs have the room
      self._clock.tell(f"{waits_for}, for {self._name}")

  def _awaited(self) -> str:
    """Whom or what the run waits for; empty if it simply goes on."""
    if not self._is_begun:
      cpus, gpus = self._room
      return f"a machine with room (--cpus {cpus} --gpus {gpus:g})"
    if self._is_stopped:
      return f"its last checkpoint on {self._who}"
    now = time.monotonic()
    if self._ping is not None and not ray.wait([self._ping], timeout=0)[0]:
      return f"an answer of {self._who}"
    if now - self._pinged > _PING:
      self._ping, self._pinged = self._host.hello.remote(), now
    return ""

  def _answered(self, answer: Any) -> None:
    if not self._is_begun:  # the host is there
      self._check(answer)
      if self._collected is not None:
        self._collected.send(self._host)
      self._is_begun, self._pinged = True, time.monotonic()
      self._ask()
      return
    if self._collected is not None:
      self._collected.fetch(self._host)
      self._collected.clear(self._host)
    self._code = answer
    ray.kill(self._host)

  def _check(self, answer: Any) -> None:
    """Raises if the host would compute with other versions than this one."""
    known = answer if isinstance(answer, dict) else {}  # of another version
    name = known.get("host", "a machine of the cluster")
    self._who = f"process {known.get('process')} on {name}"
    other = versions.changes(versions.found(), known.get("versions", {}))
    if other:
      ray.kill(self._host)
      raise errors.UserError(
        f"{name} has others than this machine: {'; '.join(other)}; install the"
        " same on all machines"
      )

  def _begin(self) -> None:
    self._host = self._kind.remote()
    self._ping = self._unreachable = None
    self._is_begun = False
    self._ask()

  def _ask(self) -> None:
    self._asked = time.monotonic()
    if self._is_begun:
      self._asked_for = self._host.run.remote(*self._call)
    else:
      self._asked_for = self._hello = self._host.hello.remote()

  def _ask_again(self) -> None:
    """Asks the same host, which may go on with the run; moves at last."""
    now = time.monotonic()
    if self._unreachable is None or now - self._asked > _RECONNECT / 2:
      self._unreachable = now  # it was there in between
    if now - self._unreachable > _RECONNECT:
      self._move()
      return
    time.sleep(_ASK)
    self._ask()
    if self._is_stopped:
      self._host.stop.remote()

  def _move(self) -> None:
    # It may be there still, and two must not write to one directory.
    ray.kill(self._host)
    if self._is_stopped:
      self._code = exit_codes.STOPPED
      return
    self._lost += 1
    if self._lost > _ATTEMPTS:
      raise errors.UserError(
        f"the run {self._name} lost {self._lost} machines or processes in turn;"
        f" {self._log} tells how it went"
      )
    notices.note(f"{self._name} lost its machine or process; it goes on anew")
    self._begin()


def _refuse_unmade(error: exceptions.RayError) -> None:
  """Raises if a host could not even begin: this package is not there."""
  lines = str(error).strip().splitlines()
  if any("creation task" in line for line in lines):
    raise errors.UserError(
      "a machine of the cluster cannot begin a run:"
      f" {lines[-1].strip()}; install the same packages on all machines"
    ) from None


def _has_room(cpus: int, gpus: float) -> bool:
  """Whether a machine of the cluster could hold a run, were it free."""
  return any(room[0] >= cpus and room[1] >= gpus for room in _rooms())


def _rooms() -> List[Tuple[float, float]]:
  """CPUs and GPUs of each machine that is there."""
  return [
    (node["Resources"].get("CPU", 0), node["Resources"].get("GPU", 0))
    for node in ray.nodes()
    if node["Alive"]
  ]


def require_room(cpus: int, gpus: float) -> None:
  """Raises if no machine of the cluster could ever hold a run."""
  if _has_room(cpus, gpus):
    return
  largest = max(
    _rooms(), key=lambda room: (room[1] >= gpus, *room), default=(0, 0)
  )
  raise errors.UserError(
    f"a run wants --cpus {cpus} --gpus {gpus:g} of one machine, and the largest"
    f" of the cluster has {largest[0]:g} CPUs and {largest[1]:g} GPUs; pass"
    " less, or join a machine that has them"
  )


def cpus_of_cluster() -> int:
  """CPUs of all machines."""
  return int(ray.cluster_resources().get("CPU", 1))
