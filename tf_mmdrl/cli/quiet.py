"""Loads TensorFlow without its chatter."""

import contextlib
import os
from typing import Iterator

from tf_mmdrl.core import notices


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
  with notices.silence():
    yield
    import tensorflow as tf

    tf.config.list_physical_devices()  # complains where there is no GPU
