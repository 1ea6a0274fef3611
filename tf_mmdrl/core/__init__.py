"""What every other package may know: errors, checks, return distributions."""

from typing import TYPE_CHECKING

from tf_mmdrl.core import lazy
from tf_mmdrl.core.errors import UserError, unknown_name

if TYPE_CHECKING:
  from tf_mmdrl.core.return_distribution import ReturnDistribution

__all__ = ["ReturnDistribution", "UserError", "unknown_name"]

__getattr__ = lazy.attributes(
  __name__, {"ReturnDistribution": "return_distribution"}
)
