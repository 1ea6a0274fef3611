"""Policies as SavedModels that plain TensorFlow loads, and a server of them."""

from tf_mmdrl.serving.directories import remove, versions
from tf_mmdrl.serving.saved_model import (
  Policy,
  load,
  metadata,
  publish,
  unchecked,
)

__all__ = [
  "Policy",
  "load",
  "metadata",
  "publish",
  "remove",
  "unchecked",
  "versions",
]
