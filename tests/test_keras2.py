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


@pytest.mark.parametrize(
  "imports", ["tf_mmdrl, tensorflow as tf", "tensorflow as tf, tf_mmdrl"]
)
def test_either_import_order_gives_keras_2(imports):
  done = _run(
    f"import {imports}\n"
    "from tf_agents.networks import q_network\n"
    "assert issubclass(q_network.QNetwork, tf.keras.layers.Layer)\n"
    "assert '.engine.' in tf.keras.layers.Layer.__module__\n"
  )
  assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not _NEW, reason="tf.keras is Keras 2 before 2.16")
@pytest.mark.parametrize(
  "code, variables",
  [
    ("import tensorflow as tf; tf.keras.layers; import tf_mmdrl", {}),
    ("import tf_mmdrl", {"TF_USE_LEGACY_KERAS": "0"}),
  ],
)
def test_too_late_says_what_to_do(code, variables):
  done = _run(code, **variables)
  assert done.returncode != 0
  last = done.stderr.strip().splitlines()[-1]
  assert last.startswith("ImportError: tf_mmdrl needs Keras 2")
  assert "TF_USE_LEGACY_KERAS" in last
