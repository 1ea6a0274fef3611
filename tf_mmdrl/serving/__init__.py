"""Policies as SavedModels that plain TensorFlow loads."""

from tf_mmdrl.serving.saved_model import Policy, load, publish, versions

__all__ = ["Policy", "load", "publish", "versions"]
