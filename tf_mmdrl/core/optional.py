"""Packages that only some uses need."""

import importlib
import importlib.util
from typing import Any

from tf_mmdrl.core import errors

# What users should know before they install it.
_LICENCES = {"minatar": "MinAtar is licensed under the GPL-3"}


def require(module: str, *, use: str, extra: str) -> Any:
  """A module, or an error that says how to get it.

  Args:
    module: its name.
    use: who needs it, in the plural: "reports".
    extra: the extra of this package that installs it.

  Returns:
    The module.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    raise _missing(error.name or module, use, extra) from None


def require_there(module: str, *, use: str, extra: str) -> None:
  """Raises the same if there is no such module, and imports nothing.

  For what should be said before the seconds that loading takes.

  Args:
    module: its name.
    use: who needs it, in the plural: "reports".
    extra: of this package, which installs it.
  """
  if not is_there(module):
    raise _missing(module, use, extra)


def is_there(module: str) -> bool:
  """Whether a module can be imported."""
  return importlib.util.find_spec(module) is not None


def _missing(module: str, use: str, extra: str) -> errors.UserError:
  licence = f" ({_LICENCES[module]})" if module in _LICENCES else ""
  return errors.UserError(
    f"{use} need {module}, which is not installed; run"
    f" pip install 'tf-mmdrl[{extra}]'{licence}"
  )
