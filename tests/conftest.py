"""Settings for all tests: Keras 2, little chatter, little memory."""

import ctypes
import gc
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
if "PYTEST_XDIST_WORKER" in os.environ:
  # Workers that each take all cores wait for each other.
  os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")

import pytest  # noqa: E402
import xdist  # noqa: E402

import tf_mmdrl  # noqa: E402,F401  (before TensorFlow: Keras 2)


def pytest_sessionstart(session):
  """Keeps the garbage collector away from what is imported."""
  if xdist.is_xdist_controller(session):
    return  # It runs no test.
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
  if sys.platform == "linux":
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # glibc keeps what is freed


@pytest.fixture
def small_disk(tmp_path):
  """Makes a disk of so many kB; only the superuser may."""
  disk = tmp_path / "disk"
  disk.mkdir()

  def mount(size):
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(disk)]
    if subprocess.run(command, capture_output=True).returncode:
      pytest.skip("a small disk cannot be mounted here")
    return disk

  yield mount
  subprocess.run(["umount", "-l", str(disk)], capture_output=True)
