"""Asks a run to stop where it can be resumed: SIGTERM and Ctrl-C."""

import os
import signal
import threading
from typing import Any, Dict

_HEARD = (
  b"\nstopping with a checkpoint; Ctrl-C again gives up what is newer than"
  b" the last one\n"
)


class Stop:
  """While entered, the first signal asks; a second Ctrl-C interrupts at once.

  Attributes:
    asked: whether a signal came.
  """

  def __init__(self):
    self.asked = False
    self._before: Dict[int, Any] = {}

  def __enter__(self) -> "Stop":
    # Python lets only the main thread listen; others cannot be asked.
    if threading.current_thread() is threading.main_thread():
      for number in (signal.SIGTERM, signal.SIGINT):
        self._before[number] = signal.signal(number, self._ask)
    return self

  def __exit__(self, *exception) -> None:
    for number, handler in self._before.items():
      signal.signal(number, handler)

  def _ask(self, number: int, frame: Any) -> None:
    del frame
    if self.asked and number == signal.SIGINT:
      raise KeyboardInterrupt
    if not self.asked:
      os.write(2, _HEARD)  # not print, which the signal may have interrupted
    self.asked = True
