"""Packages that only some uses need."""

import importlib
import importlib.util
from typing import Any

from tf_mmdrl.core import errors


def require(module: str, *, use: str, extra: str) -> Any:
  """A module, or an error that says how to get it.

  Args:
    module: its name.
    use: who needs it, in the plural: "reports".
    extra: of this package, which installs it.

  Returns:
    The module.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    raise errors.UserError(
      f"{use} need {error.name or module}, which is not installed; run"
      f" pip install 'tf-mmdrl[{extra}]'"
    ) from None


def is_there(module: str) -> bool:
  """Whether a module can be imported."""
  return importlib.util.find_spec(module) is not None
