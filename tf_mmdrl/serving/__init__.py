"""Policies as SavedModels that plain TensorFlow loads."""

from tf_mmdrl.serving.saved_model import publish, versions

__all__ = ["publish", "versions"]
