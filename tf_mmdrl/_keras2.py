"""Makes `tf.keras` mean Keras 2, which TF-Agents needs, or says why it cannot.

From TensorFlow 2.16 on `tf.keras` is Keras 3 unless TF_USE_LEGACY_KERAS=1 is
set when `tf.keras` is first used.
"""

import importlib.util
import os
import pathlib
import sys

VARIABLE = "TF_USE_LEGACY_KERAS"
_YES = ("1", "true", "True")  # what TensorFlow understands


def require() -> None:
  """Sets the variable, or raises where `tf.keras` is Keras 3 already."""
  names = ("tensorflow", "tensorflow.compat.v2")
  if any(_decided(sys.modules[n]) for n in names if n in sys.modules):
    return
  if os.environ.get(VARIABLE, "1") not in _YES:
    raise ImportError(
      f"tf_mmdrl needs Keras 2 (TF-Agents does), but {VARIABLE} is"
      f" {os.environ[VARIABLE]!r}; unset it or set it to 1."
    )
  if importlib.util.find_spec("tf_keras") is None:
    return  # TensorFlow 2.15 may do without; later ones say what is missing
  os.environ[VARIABLE] = "1"
  if "tensorflow" in sys.modules:
    _route(sys.modules["tensorflow"])


def _route(tensorflow) -> None:
  """`import tensorflow.keras` finds tf_keras, as if the variable came first."""
  spec = importlib.util.find_spec("tf_keras.api._v2.keras")
  if spec is not None and spec.origin is not None:
    folder = str(pathlib.Path(spec.origin).parents[1])
    tensorflow.__path__ = [folder, *tensorflow.__path__]


def _decided(tensorflow) -> bool:
  """Whether tf.keras is Keras 2 for good; raises if it is Keras 3."""
  keras = vars(tensorflow).get("keras")
  if keras is None or vars(keras).get("_tfll_initialized") is False:
    return False  # TensorFlow looks at the variable when keras is first used
  # Keras 2 has keras.src.engine.base_layer, Keras 3 keras.src.layers.layer.
  if ".engine." in keras.layers.Layer.__module__:
    return True
  raise ImportError(
    "tf_mmdrl needs Keras 2 (TF-Agents does), but tensorflow"
    f" {tensorflow.__version__} runs Keras 3 and tf.keras is in use already."
    f" Import tf_mmdrl before the first use of tf.keras, or set {VARIABLE}=1."
  )
