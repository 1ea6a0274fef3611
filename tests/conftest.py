"""Settings for all tests: Keras 2, two threads, no chatter from TensorFlow."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tf_mmdrl  # noqa: E402,F401  (before TensorFlow: Keras 2)
