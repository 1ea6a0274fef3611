"""A program that ends a run whose signals nobody hears.

An environment written in C may hold Python's lock, and then no Python of its
process runs, what waits for SIGTERM neither. `train.stopping` starts this
beside a run. Signals are written to a pipe, which Python itself does in C; its
reader in the run takes them out at once. Once the run was asked to stop it
leaves one byte and two in turn, so what is in the pipe becomes less again and
again. Where it does not the run hears nothing: more signals only make it more,
as if somebody presses Ctrl-C once more. The run is killed, for its last
checkpoint is whole.

Usage: watchdog.py RUN SECONDS [CHECKPOINTS], with the pipe as standard input.
"""

import fcntl
import os
import signal
import struct
import sys
import termios
import time

_LOOK = 0.5  # seconds between two looks


def _unread() -> int:
  """How many bytes are in the pipe."""
  found = fcntl.ioctl(0, termios.FIONREAD, struct.pack("i", 0))
  return int(struct.unpack("i", found)[0])


def _is_suspended(run: int) -> bool:
  """Whether a process was stopped by Ctrl-Z, or by who looks into it."""
  try:
    with open(f"/proc/{run}/stat") as file:
      return file.read().rpartition(")")[2].split()[0] in "tT"
  except OSError:  # there is no /proc
    return False


def _what_is_left(checkpoints: str) -> str:
  """What the same command would go on with; as `run_records` says it.

  That cannot be imported here, where nothing but Python itself is.
  """
  try:
    steps = [int(name) for name in os.listdir(checkpoints) if name.isdigit()]
  except OSError:
    steps = []
  if not steps:
    return "there is no checkpoint yet, so the same command begins anew"
  return f"the same command goes on at the checkpoint of step {max(steps):,}"


def _tell(run: int, seconds: float, left: str) -> None:
  """Says it where the run does; this program holds none of its outputs."""
  text = (
    f"\nmmdrl: the run has not heard for {seconds:.0f} s that it is to stop:"
    f" its environment holds Python's lock. It is killed; {left}\n"
  )
  try:
    with open(f"/proc/{run}/fd/2", "a") as errors:
      errors.write(text)
  except OSError:
    pass  # nobody listens


def main() -> None:
  """Waits until the run ends, or ends it."""
  run, seconds = int(sys.argv[1]), float(sys.argv[2])
  before, since = 0, time.monotonic()
  while os.getppid() == run:
    now = _unread()
    if not before or now < before or _is_suspended(run):
      since = time.monotonic()
    elif time.monotonic() - since > seconds:
      _tell(run, seconds, _what_is_left(*sys.argv[3:] or [""]))
      os.kill(run, signal.SIGKILL)
      return
    before = now
    time.sleep(_LOOK)


if __name__ == "__main__":
  main()
