"""The package makes tf.keras Keras 2, or says what to do."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

_NEW = tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (2, 16)


def _run(code, **variables):
  env = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
  return subprocess.run(
    [sys.executable, "-c", code],
    env={**env, **variables},
    capture_output=True,
    text=True,
  )


def test_import_order_that_works():
  done = _run(
    "import tf_mmdrl, tensorflow as tf;print(tf.keras.layers.Layer.__module__)"
  )
  assert done.returncode == 0, done.stderr
  assert "keras.src" not in done.stdout or "tf_keras" in done.stdout or not _NEW


@pytest.mark.skipif(not _NEW, reason="tf.keras is Keras 2 before 2.16")
@pytest.mark.parametrize(
  "code, variables",
  [
    ("import tensorflow, tf_mmdrl", {}),
    ("import tf_mmdrl", {"TF_USE_LEGACY_KERAS": "0"}),
  ],
)
def test_too_late_says_what_to_do(code, variables):
  done = _run(code, **variables)
  assert done.returncode != 0
  last = done.stderr.strip().splitlines()[-1]
  assert last.startswith("ImportError: tf_mmdrl needs Keras 2")
  assert "TF_USE_LEGACY_KERAS" in last
