"""Errors a user can act on: what was wanted, what came, how to fix it."""

import difflib
from typing import Iterable

_SHOWN = 20  # names at most, so that the message is read


class UserError(ValueError):
  """Input that the user can correct; the command line shows it as one line."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
  """An error for a misspelt name that offers the nearest ones.

  Args:
    kind: what the name stands for, for example `"kernel"`.
    name: the name that came.
    known: the names there are.

  Returns:
    The error, to be raised by the caller.
  """
  names = sorted(known)
  folded = {candidate.lower(): candidate for candidate in names}
  near = difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)
  hint = (
    "did you mean " + " or ".join(repr(folded[match]) for match in near) + "?"
    if near
    else "known: " + ", ".join(names[:_SHOWN])
  )
  if not near and len(names) > _SHOWN:
    hint += f" and {len(names) - _SHOWN} more"
  return UserError(f"unknown {kind} {name!r}; {hint}")
