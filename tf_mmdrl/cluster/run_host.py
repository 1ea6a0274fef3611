"""Runs of sweeps and searches on the machines of a cluster.

Each is a process `mmdrl train`, as on one machine, that a Ray actor starts and
watches. If its machine is lost, another one starts the same command again and
the run resumes exactly from its newest checkpoint: run directories are on a
path that all machines share.
"""

import pathlib
import threading
import time
from typing import Any, Optional, Sequence

import ray
from ray import exceptions

from tf_mmdrl.core import errors, exit_codes, notices
from tf_mmdrl.train import run_process

_ATTEMPTS = 10  # machines that a run may lose
_RECONNECT = 60.0  # seconds that a host may be out of reach
_ASK = 1.0  # seconds until it is asked again
_CALLS = 100  # at once; those that lost their caller wait with the others


class RunHost:
  """Starts a run where it is placed; killed with it."""

  def __init__(self) -> None:
    self._process: Optional[run_process.RunProcess] = None
    self._lock = threading.Lock()
    self._is_stopped = False

  def run(
    self, arguments: Sequence[str], directory: str, log: str, threads: int
  ) -> Optional[int]:
    """Runs to the end; the exit code. Called again, waits for the same run."""
    with self._lock:
      if self._process is None:
        self._process = run_process.RunProcess(
          arguments,
          pathlib.Path(directory),
          pathlib.Path(log),
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
  ):
    """Starts it as soon as a machine has room.

    Args:
      arguments: of `mmdrl train`, but for the directory.
      directory: of the run, the same on all machines.
      log: where its output is appended.
      cpus: that it computes with.
      gpus: that it has.
    """
    kind: Any = ray.remote(RunHost)
    self._kind = kind.options(
      num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_concurrency=_CALLS
    )
    self._call = (
      list(arguments),
      str(directory.resolve()),
      str(log.resolve()),
      cpus,
    )
    self._name = directory.name
    self._lost = 0
    self._is_stopped = False
    self._asked = 0.0
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
      if not ray.wait([self._running], timeout=left)[0]:
        return None
      try:
        self._code = ray.get(self._running)
        ray.kill(self._host)
      except exceptions.RayTaskError as error:
        raise getattr(error, "cause", None) or error from None
      except exceptions.ActorUnavailableError:
        self._ask_again()
      except exceptions.RayError:
        self._move()
    return self._code

  def stop(self) -> None:
    """Tells it to stop; it writes a checkpoint first."""
    self._is_stopped = True
    self._host.stop.remote()

  def _begin(self) -> None:
    self._host = self._kind.remote()
    self._unreachable = None
    self._ask()

  def _ask(self) -> None:
    self._asked = time.monotonic()
    self._running = self._host.run.remote(*self._call)

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
        f" {self._call[2]} tells how it went"
      )
    notices.note(f"{self._name} lost its machine or process; it goes on anew")
    self._begin()


def require_room(cpus: int, gpus: float) -> None:
  """Raises if no machine of the cluster could ever hold a run."""
  rooms = [
    (node["Resources"].get("CPU", 0), node["Resources"].get("GPU", 0))
    for node in ray.nodes()
    if node["Alive"]
  ]
  if any(room[0] >= cpus and room[1] >= gpus for room in rooms):
    return
  largest = max(
    rooms, key=lambda room: (room[1] >= gpus, *room), default=(0, 0)
  )
  raise errors.UserError(
    f"a run wants --cpus {cpus} --gpus {gpus:g} of one machine, and the largest"
    f" of the cluster has {largest[0]:g} CPUs and {largest[1]:g} GPUs; pass"
    " less, or join a machine that has them"
  )


def cpus_of_cluster() -> int:
  """CPUs of all machines."""
  return int(ray.cluster_resources().get("CPU", 1))
