"""Loads TensorFlow without its chatter."""

import contextlib
import os
import sys
from typing import Iterator


@contextlib.contextmanager
def loading() -> Iterator[None]:
  """Silences what libraries write to standard error while they load.

  TensorFlow 2.21 writes before its own log level counts, and the dead `gym`
  that TF-Agents loads advertises its successor. Exceptions get through. With
  TF_CPP_MIN_LOG_LEVEL set to 0 or 1 nothing is silenced.
  """
  if os.environ.get("TF_CPP_MIN_LOG_LEVEL") in ("0", "1"):
    yield
    return
  sys.stderr.flush()
  kept = os.dup(2)
  try:
    with open(os.devnull, "wb") as nowhere:
      os.dup2(nowhere.fileno(), 2)
    yield
    import tensorflow as tf

    tf.config.list_physical_devices()  # complains where there is no GPU
  finally:
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)
