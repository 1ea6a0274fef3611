"""What every other package may know: errors, checks, return distributions."""

from tf_mmdrl.core.errors import UserError, unknown_name
from tf_mmdrl.core.return_distribution import ReturnDistribution

__all__ = ["ReturnDistribution", "UserError", "unknown_name"]
