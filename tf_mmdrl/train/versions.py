"""The versions that a run depends on; needs no TensorFlow."""

import importlib.metadata
import sys
from typing import Any, Dict, List, Mapping

from tf_mmdrl import version

_PACKAGES = (
  "tensorflow",
  "tf-agents",
  "tf-keras",
  "tensorflow-probability",
  "numpy",
  "ale-py",
  "gymnasium",
  "mo-gymnasium",
  "Box2D",
  "minatar",
)
_NOT_THERE = "not installed"


def found() -> Dict[str, str]:
  """Of this package, of Python, and of what numbers depend on, by name."""
  versions = {"tf-mmdrl": version.__version__, "python": sys.version.split()[0]}
  for package in _PACKAGES:
    try:
      versions[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      versions[package] = _NOT_THERE
  return versions


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> List[str]:
  """What is another one now, each as `name: before -> now`."""
  return [
    f"{name}: {value} -> {now.get(name, _NOT_THERE)}"
    for name, value in before.items()
    if now.get(name, _NOT_THERE) != value
  ]
