"""Makes `tf.keras` mean Keras 2, which TF-Agents needs, or says why it cannot.

From TensorFlow 2.16 on `tf.keras` is Keras 3 unless TF_USE_LEGACY_KERAS=1 was
set before TensorFlow was imported; the variable is read at that import only.
"""

import importlib.util
import os
import sys

VARIABLE = "TF_USE_LEGACY_KERAS"


def require() -> None:
  """Sets the variable, or raises where TensorFlow already runs Keras 3."""
  if "tensorflow" in sys.modules:
    _check_imported()
  elif VARIABLE not in os.environ:
    if importlib.util.find_spec("tf_keras") is not None:
      os.environ[VARIABLE] = "1"
  elif os.environ[VARIABLE].strip().lower() not in ("1", "true"):
    raise ImportError(
      f"tf_mmdrl needs Keras 2 (TF-Agents does), but {VARIABLE} is"
      f" {os.environ[VARIABLE]!r}; unset it or set it to 1."
    )


def _check_imported() -> None:
  # Not `tf.keras`: resolving that lazy attribute would fix Keras 3 for good.
  import tensorflow as tf

  major, minor = (int(part) for part in tf.__version__.split(".")[:2])
  if (major, minor) < (2, 16):
    return  # tf.keras is Keras 2 there, whatever the variable says
  if os.environ.get(VARIABLE, "").strip().lower() in ("1", "true"):
    return
  raise ImportError(
    f"tf_mmdrl needs Keras 2 (TF-Agents does), but tensorflow"
    f" {tf.__version__} was imported first, with Keras 3. Import tf_mmdrl"
    f" (or set {VARIABLE}=1) before tensorflow."
  )
