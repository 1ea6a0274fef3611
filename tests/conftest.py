"""Settings for all tests: Keras 2, two threads, no chatter from TensorFlow."""

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import pytest  # noqa: E402

import tf_mmdrl  # noqa: E402,F401  (before TensorFlow: Keras 2)


def pytest_sessionstart():
  """Keeps the garbage collector away from what is imported."""
  import tensorflow  # noqa: F401
  import tf_agents.agents  # noqa: F401

  # Half a million objects that live to the end; each full collection would
  # walk over them, and tracing a graph makes enough for several.
  gc.collect()
  gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def forget_graphs():
  """Lets go of a module's graphs, which otherwise make a worker of 4 GB."""
  yield
  import tensorflow as tf
  from tensorflow.python.framework import ops

  # TensorFlow keeps every graph that a custom gradient was traced in.
  registered = ops.gradient_registry._registry
  for name in [name for name in registered if name.startswith("CustomGrad")]:
    del registered[name]
  tf.keras.backend.clear_session()
  gc.collect()
