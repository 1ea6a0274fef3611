"""Loads TensorFlow without its chatter."""

import contextlib
import os
import signal
import threading
from typing import Any, Iterator, List

from tf_mmdrl.core import notices


@contextlib.contextmanager
def loading() -> Iterator[None]:
  """Silences what libraries write to standard error while they load.

  TensorFlow 2.21 writes before its own log level counts, and the dead `gym`
  that TF-Agents loads advertises its successor. Exceptions get through. With
  TF_CPP_MIN_LOG_LEVEL set to 0 or 1 nothing is silenced.
  """
  with _interruptible():
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1"):
      yield
      return
    with notices.silence():
      yield
      _find_devices()


def _find_devices() -> None:
  import tensorflow as tf

  tf.config.list_physical_devices()  # complains where there is no GPU


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
  """Lets Ctrl-C end the program also where libraries swallow it.

  Some of what is imported catches whatever is raised in it, and then the
  program went on as if nobody had asked it to end.
  """
  heard: List[int] = []

  def interrupt(number: int, frame: Any) -> None:
    del frame
    heard.append(number)
    raise KeyboardInterrupt

  if (
    threading.current_thread() is not threading.main_thread()
    or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
  ):
    yield
    return
  signal.signal(signal.SIGINT, interrupt)
  try:
    yield
  except Exception:
    if not heard:
      raise
  finally:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  if heard:
    raise KeyboardInterrupt
