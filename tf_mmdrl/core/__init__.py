"""What every other package may know: errors, checks, return distributions."""

from tf_mmdrl.core.errors import UserError, unknown_name

__all__ = ["UserError", "unknown_name"]
