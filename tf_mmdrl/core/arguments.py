"""Keywords that a class cannot take: what replaces them, or which is near."""

import difflib
import inspect
import itertools
from typing import Mapping, Set

from tf_mmdrl.core import errors

_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class KeywordError(errors.UserError, TypeError):
  """Arguments that a class cannot take; Python's own are TypeErrors too."""


def accepted(cls: type, base: type) -> Set[str]:
  """All keywords that a class and its bases spell out.

  Args:
    cls: the class the user typed.
    base: the class at which to stop; its own keywords are not among them.

  Returns:
    The names.
  """
  ours = itertools.takewhile(lambda one: one is not base, cls.__mro__)
  names: Set[str] = set()
  for one in ours:
    if "__init__" in vars(one):
      parameters = inspect.signature(vars(one)["__init__"]).parameters.values()
      names |= {p.name for p in parameters if p.kind not in _COLLECTING}
  return names - {"self"}


def no_such_keyword(
  cls: type, name: str, replaced: Mapping[str, str], known: Set[str]
) -> KeywordError:
  """An error that says what to do about a keyword.

  Args:
    cls: the class the user typed.
    name: the keyword that came.
    replaced: keyword -> what to do about it.
    known: the keywords that the class takes.

  Returns:
    The error, to be raised by the caller.
  """
  every = sorted({*replaced, *known})
  near = difflib.get_close_matches(name, every, n=1, cutoff=0.8)
  if near and near[0] not in known:
    advice = replaced[near[0]]
    return KeywordError(f"{cls.__name__} takes no {name}: {advice}")
  kind = f"keyword of {cls.__name__}"
  return KeywordError(str(errors.unknown_name(kind, name, known)))
