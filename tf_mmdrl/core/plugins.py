"""Things of your own, named `package.module:NAME` where a name is wanted."""

import importlib
import re
from typing import Any

from tf_mmdrl.core import errors


def is_place(text: str) -> bool:
  """Whether a text has the form `package.module:NAME`."""
  return bool(re.fullmatch(r"[^\W\d][\w.]*:[^\W\d]\w*", text))


def load(kind: str, place: str, wanted: type) -> Any:
  """What lies at `package.module:NAME`.

  Args:
    kind: what it is, for messages: `"agent"`.
    place: where it is, `package.module:NAME`.
    wanted: the class that it must be of.

  Returns:
    The object.
  """
  module, _, name = place.partition(":")
  try:
    found = importlib.import_module(module)
  except (Exception, SystemExit) as error:  # whatever somebody's module raises
    raise errors.UserError(
      f"the {kind} {place!r} cannot be imported: {type(error).__name__}:"
      f" {error}; install its package, or put its folder on PYTHONPATH"
    ) from error
  choices = [key for key, v in vars(found).items() if isinstance(v, wanted)]
  if not hasattr(found, name) and not choices:
    raise errors.UserError(
      f"the {kind} {place!r} must be a {wanted.__module__}.{wanted.__name__},"
      f" but {module} ({getattr(found, '__file__', 'a package')}) has no"
      f" {name!r} and nothing of that kind"
    )
  if not hasattr(found, name):
    raise errors.unknown_name(f"{kind} in {module}", name, choices)
  value = getattr(found, name)
  if not isinstance(value, wanted):
    raise errors.UserError(
      f"the {kind} {place!r} must be a {wanted.__module__}.{wanted.__name__},"
      f" got a {type(value).__name__}"
    )
  return value
