"""`mmdrl train` as a process of its own, so that a failure stays its own."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any, Optional, Sequence

STOPPED = (75, 130, -2, -15)  # exit codes of a run that was told to stop
_PARENT_DIED = 1  # PR_SET_PDEATHSIG of Linux' prctl


class RunProcess:
  """A run that goes on in another process, and writes its output to a log."""

  def __init__(
    self,
    arguments: Sequence[str],
    directory: pathlib.Path,
    log: pathlib.Path,
    *,
    threads: int,
    bound: bool = False,
  ):
    """Starts it.

    Args:
      arguments: of `mmdrl train`, but for the directory.
      directory: of the run.
      log: where its output is appended.
      threads: that it computes with.
      bound: whether it is killed when the thread that started it dies, so that
        nobody else writes to the directory when that begins again.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as output:
      self._process = subprocess.Popen(
        [
          *(sys.executable, "-m", "tf_mmdrl", "train"),
          *(*arguments, "--run-dir", str(directory)),
        ],
        stdout=output,
        stderr=subprocess.STDOUT,
        env={
          **os.environ,
          "TF_NUM_INTRAOP_THREADS": str(threads),
          "OMP_NUM_THREADS": str(threads),
        },
        preexec_fn=_bind() if bound else None,
      )

  def poll(self) -> Optional[int]:
    """The exit code; None while it goes on."""
    return self._process.poll()

  def wait(self, seconds: Optional[float] = None) -> Optional[int]:
    """As `poll`, after its end or so many seconds."""
    try:
      return self._process.wait(seconds)
    except subprocess.TimeoutExpired:
      return None

  def stop(self) -> None:
    """Tells it to stop; it writes a checkpoint first."""
    self._process.terminate()


def reason(code: int, log: pathlib.Path) -> str:
  """Why a run failed: what killed it, if something did, and its last line."""
  said = last_line(log)
  # A shell's word for a signal is 128 and its number, Popen's its negative.
  number = -code if code < 0 else code - 128
  if number != signal.SIGKILL:
    return said
  return (
    "killed (SIGKILL): for want of memory, or because it did not hear that it"
    f" was to stop. Its last line: {said}"
  )


def last_line(log: pathlib.Path) -> str:
  """What a run that failed said at last."""
  lines = log.read_text(errors="replace").strip().splitlines()
  return lines[-1] if lines else f"nothing in {log}"


def _bind() -> Any:
  """What a child calls; all of it is loaded before the fork."""
  if not sys.platform.startswith("linux"):
    return None
  prctl = ctypes.CDLL(None, use_errno=True).prctl
  return lambda: prctl(_PARENT_DIED, signal.SIGKILL, 0, 0, 0)
