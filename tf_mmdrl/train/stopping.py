"""Asks a run to stop where it can be resumed: SIGTERM, SIGHUP and Ctrl-C.

A run stops between two rounds. If an environment does not answer it never gets
there; then it ends at its last checkpoint, soon enough for those who send
SIGKILL half a minute after SIGTERM. Where it does not even let Python hear the
signal, another process ends the run (`watchdog.py`).
"""

import contextlib
import itertools
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterator, Optional

from tf_mmdrl.core import exit_codes, notices
from tf_mmdrl.environments import checked

# Of a system that has no terminals to hang up there are two.
_SIGNALS = [
  getattr(signal, name)
  for name in ("SIGTERM", "SIGINT", "SIGHUP")
  if hasattr(signal, name)
]
_HEARD = (
  b"\nstopping with a checkpoint;"
  b" Ctrl-C again gives up what came since the last\n"
)
_PATIENCE = 20.0  # seconds that an environment may take for one call
_LATEST = 27.0  # seconds after which half of that is too much
_UNHEARD = 25.0  # seconds after which a run that hears no signal is killed
_LOOK = 0.5  # seconds between two looks
_ALIVE = b"\0"  # the number of no signal
_MOST_BYTES = 1 << 16  # that a pipe holds
_WATCHDOG = pathlib.Path(__file__).with_name("watchdog.py")


class Stop:
  """While entered, the first signal asks; a second Ctrl-C interrupts at once.

  Attributes:
    asked: whether a signal came.
  """

  def __init__(
    self,
    left: Callable[[], str] = lambda: "run it again to go on",
    checkpoints: Optional[pathlib.Path] = None,
  ):
    """Does not listen yet.

    Args:
      left: says what the same command would go on with, if the run ended now.
      checkpoints: their directory, for who must say that without the run.
    """
    self._checkpoints = checkpoints
    self.asked = False
    self._left = left
    self._watchdog: Optional[subprocess.Popen] = None
    self._before: Dict[int, Any] = {}
    self._wake = -1  # the end of a pipe that signals write to
    self._before_wake = -1
    self._over = threading.Event()
    self._alive = threading.Lock()  # held while the pipe is sure to be open
    self._save: Optional[Callable[[], None]] = None

  def __enter__(self) -> "Stop":
    # Python lets only the main thread listen; others cannot be asked.
    if threading.current_thread() is threading.main_thread():
      for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup wants it
          self._before[number] = signal.signal(number, self._ask)
      # The handler runs in the main thread, which an environment may hold up.
      # What the pipe wakes does not wait for it.
      asleep, self._wake = os.pipe()
      os.set_blocking(self._wake, False)
      self._begin_watchdog(asleep)
      self._before_wake = signal.set_wakeup_fd(self._wake)
      threading.Thread(target=self._guard, args=(asleep,), daemon=True).start()
    return self

  def __exit__(self, *exception) -> None:
    with self._alive:
      self._over.set()
    for number, handler in self._before.items():
      signal.signal(number, handler)
    if self._wake != -1:
      signal.set_wakeup_fd(self._before_wake)
      os.close(self._wake)
    self._end_watchdog()

  @contextlib.contextmanager
  def saving_if_stuck(self, save: Callable[[], None]) -> Iterator[None]:
    """While entered, a run that must be given up is saved first.

    Args:
      save: makes a checkpoint; for a moment at which the run waits for an
        environment that is no part of it.
    """
    self._save = save
    try:
      yield
    finally:
      self._save = None

  def _ask(self, number: int, frame: Any) -> None:
    del frame
    if self.asked and number == signal.SIGINT:
      raise KeyboardInterrupt
    if not self.asked:
      # Not print, which the signal may have interrupted. Ctrl-C ends `| tee` as
      # well, and who hangs up cannot be told.
      with contextlib.suppress(OSError):
        os.write(2, _HEARD)
    self.asked = True

  def _guard(self, asleep: int) -> None:
    """Ends the process if it was asked to stop and an environment hangs."""
    with (
      os.fdopen(asleep, "rb", buffering=0) as pipe,
      selectors.DefaultSelector() as selector,
    ):
      selector.register(pipe, selectors.EVENT_READ)
      asked = {bytes([number]) for number in self._before}
      heard = b""
      while heard not in asked:
        # To wait in `read` would take the byte out without Python's lock.
        selector.select()
        heard = pipe.read(1)
        if not heard:
          return  # the run is over
      began = time.monotonic()
      for look in itertools.count(1):
        if self._over.wait(_LOOK):
          return
        is_late = time.monotonic() - began > _LATEST
        if checked.longest_call() > _PATIENCE / (2 if is_late else 1):
          self._give_up()
        if look > 1:  # what is there since the last look, and more signals
          pipe.read(_MOST_BYTES)
        with self._alive:
          if not self._over.is_set():
            os.write(self._wake, _ALIVE * (1 + look % 2))

  def _begin_watchdog(self, asleep: int) -> None:
    python = (sys.executable, "-I", "-S")  # which starts in no time
    where = [str(self._checkpoints.absolute())] if self._checkpoints else []
    with contextlib.suppress(OSError):  # the run goes on without it
      self._watchdog = subprocess.Popen(
        [*python, str(_WATCHDOG), str(os.getpid()), str(_UNHEARD), *where],
        stdin=asleep,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is not for it
      )

  def _end_watchdog(self) -> None:
    if self._watchdog is not None:
      self._watchdog.kill()
      self._watchdog.wait()

  def _give_up(self) -> None:
    how = "without a new checkpoint"
    try:
      if self._save is not None:
        self._save()
        how = "with a new checkpoint"
    finally:  # the environment's thread cannot be ended in any other way
      notices.note(
        f"the environment has not answered for {checked.longest_call():.0f} s,"
        f" so the run ends {how}; {self._left()}"
      )
      self._end_watchdog()
      notices.show("", sys.stdout)
      os._exit(exit_codes.STOPPED)
