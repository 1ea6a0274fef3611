"""What the files of algorithms say, read without importing them.

Importing one loads TensorFlow, for which help and messages should not wait.
"""

import ast
import functools
import pathlib
from typing import List, Optional

from tf_mmdrl.core import errors

ATTRIBUTE = "ALGORITHM"
_AGENTS = pathlib.Path(__file__).parents[1] / "agents"
_END = "_agent.py"
_BASE = "algorithms.Settings"  # has no settings itself


def names() -> List[str]:
  """The algorithms that have a file, in no order."""
  return [path.name[: -len(_END)] for path in _AGENTS.glob(f"*{_END}")]


def summary(name: str) -> str:
  """The text of `summary=`."""
  found = _argument(name, "summary")
  if isinstance(found, ast.Constant):
    return str(found.value)
  raise errors.UserError(
    f"{name}{_END} must have {ATTRIBUTE} = algorithms.Algorithm(summary=...)"
    " with the summary as a plain text in quotes"
  )


def settings(name: str) -> Optional[List[str]]:
  """The names of an algorithm's own settings, or None if that is not plain.

  Plain is a class in the file or, as `other_agent.Settings`, in another
  algorithm's file, whose bases are such classes, too.
  """
  found = _argument(name, "settings")
  return None if found is None else _fields(name, ast.unparse(found))


def _fields(name: str, class_name: str) -> Optional[List[str]]:
  """The fields of a class as a file calls it."""
  if class_name == _BASE:
    return []
  module, dot, own = class_name.rpartition(".")
  if dot:
    file = f"{module}.py"
    if not file.endswith(_END) or not (_AGENTS / file).exists():
      return None
    return _fields(file[: -len(_END)], own)
  for node in _tree(name).body:
    if isinstance(node, ast.ClassDef) and node.name == class_name:
      fields: List[str] = []
      for base in node.bases:
        inherited = _fields(name, ast.unparse(base))
        if inherited is None:
          return None
        fields += inherited
      return fields + [
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
      ]
  return None


def _argument(name: str, keyword: str) -> Optional[ast.expr]:
  """What follows `keyword=` in a file's `ALGORITHM = Algorithm(...)`."""
  for node in _tree(name).body:
    if (
      isinstance(node, ast.Assign)
      and ast.unparse(node.targets[0]) == ATTRIBUTE
      and isinstance(node.value, ast.Call)
    ):
      for argument in node.value.keywords:
        if argument.arg == keyword:
          return argument.value
  return None


@functools.cache
def _tree(name: str) -> ast.Module:
  return ast.parse((_AGENTS / f"{name}{_END}").read_text())
