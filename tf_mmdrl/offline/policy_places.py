"""Policies by what users write, before anything of them is loaded."""

import pathlib
from typing import NamedTuple, Optional

from tf_mmdrl import zoo
from tf_mmdrl.core import errors, plugins

RANDOM = "random"


class Place(NamedTuple):
  """Where a policy is.

  Attributes:
    directory: of a run or of exports; None: it is a function.
    version: of the export; the newest if None.
  """

  directory: Optional[pathlib.Path] = None
  version: Optional[int] = None


def find(text: str, version: Optional[int] = None) -> Place:
  """Where a policy is that is not random play; an error if it is nowhere.

  Args:
    text: the directory of a run or of exports, `PATH@VERSION` for one version,
      `zoo:NAME`, or `package.module:FUNCTION`.
    version: of the export, if the text has none.
  """
  path, at, number = text.rpartition("@")
  if at and number.isdigit() and pathlib.Path(path).is_dir():
    version = int(number)
  else:
    path = text
  if plugins.is_place(text) and not zoo.place(text).exists():
    return Place()
  directory = zoo.place(path)
  if not directory.is_dir():
    raise errors.UserError(
      f"there is no policy {text!r}; pass the directory of a run or of exports,"
      f" package.module:FUNCTION, or {RANDOM}"
    )
  return Place(directory, version)
