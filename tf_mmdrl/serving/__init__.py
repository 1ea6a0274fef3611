"""Policies as SavedModels that plain TensorFlow loads, and a server of them."""

from typing import TYPE_CHECKING

from tf_mmdrl.core import lazy
from tf_mmdrl.serving.directories import remove, versions
from tf_mmdrl.serving.manifests import metadata

if TYPE_CHECKING:
  from tf_mmdrl.serving.saved_model import (
    Policy,
    load,
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

# What needs TensorFlow is loaded when it is asked for.
__getattr__ = lazy.attributes(
  __name__,
  dict.fromkeys(("Policy", "load", "publish", "unchecked"), "saved_model"),
)
