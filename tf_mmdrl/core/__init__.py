"""What every other package may know: errors, checks, return distributions."""

from typing import TYPE_CHECKING, Any

from tf_mmdrl.core.errors import UserError, unknown_name

if TYPE_CHECKING:
  from tf_mmdrl.core.return_distribution import ReturnDistribution

__all__ = ["ReturnDistribution", "UserError", "unknown_name"]


def __getattr__(name: str) -> Any:
  # Loaded when asked for: commands that only show an error or some help should
  # not wait seconds for TensorFlow.
  if name == "ReturnDistribution":
    from tf_mmdrl.core.return_distribution import ReturnDistribution

    return ReturnDistribution
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
