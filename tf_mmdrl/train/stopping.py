"""Asks a run to stop where it can be resumed: SIGTERM, SIGHUP and Ctrl-C.

A run stops between two rounds. If an environment does not answer it never gets
there; then it ends at its last checkpoint, soon enough for those who send
SIGKILL half a minute after SIGTERM.
"""

import contextlib
import os
import signal
import sys
import threading
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
_LOOK = 0.5  # seconds between two looks


class Stop:
  """While entered, the first signal asks; a second Ctrl-C interrupts at once.

  Attributes:
    asked: whether a signal came.
  """

  def __init__(self):
    self.asked = False
    self._before: Dict[int, Any] = {}
    self._wake = -1  # the end of a pipe that signals write to
    self._before_wake = -1
    self._over = threading.Event()
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
      self._before_wake = signal.set_wakeup_fd(self._wake)
      threading.Thread(target=self._guard, args=(asleep,), daemon=True).start()
    return self

  def __exit__(self, *exception) -> None:
    self._over.set()
    for number, handler in self._before.items():
      signal.signal(number, handler)
    if self._wake != -1:
      signal.set_wakeup_fd(self._before_wake)
      os.close(self._wake)

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
    with os.fdopen(asleep, "rb", buffering=0) as pipe:
      asked = {bytes([number]) for number in self._before}
      while (byte := pipe.read(1)) not in asked:
        if not byte:
          return  # the run is over
      while not self._over.wait(_LOOK):  # and later signals have a reader
        if checked.longest_call() > _PATIENCE:
          self._give_up()

  def _give_up(self) -> None:
    rest = "; the steps since then are lost"
    try:
      if self._save is not None:
        self._save()
        rest = ""
    finally:  # the environment's thread cannot be ended in any other way
      notices.note(
        f"the environment has not answered for {_PATIENCE:.0f} s, so the run"
        f" ends at its last checkpoint{rest}. Run the same command to go on"
      )
      notices.show("", sys.stdout)
      os._exit(exit_codes.STOPPED)
