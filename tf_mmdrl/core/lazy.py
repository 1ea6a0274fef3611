"""Packages whose names are imported when they are asked for.

Commands that only show an error or some help should not wait seconds for
TensorFlow, so a package that has parts without TensorFlow does not load the
others by itself.
"""

import importlib
from typing import Any, Callable, Mapping


def attributes(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
  """A `__getattr__` for a package.

  Args:
    package: its `__name__`.
    places: a public name -> the module of the package that has it.

  Returns:
    The function.
  """

  def get(name: str) -> Any:
    if name not in places:
      raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module = importlib.import_module(f"{package}.{places[name]}")
    return getattr(module, name)

  return get
