"""Errors a user can act on: what was wanted, what came, how to fix it."""

import contextlib
import difflib
from typing import Iterable, Iterator, List

_SHOWN = 20  # names at most, so that the message is read


class UserError(ValueError):
  """Input that the user can correct; the command line shows it as one line."""


class BrokenRunError(UserError):
  """What ends a run; who knows its checkpoints adds where it can go on."""


@contextlib.contextmanager
def about(what: str) -> Iterator[None]:
  """Errors of users begin with what they are about."""
  try:
    yield
  except UserError as error:
    raise UserError(f"{what}: {error}") from error


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
  near = nearest(name, names)
  hint = (
    "did you mean " + " or ".join(map(repr, near)) + "?"
    if near
    else "known: " + ", ".join(names[:_SHOWN])
  )
  if not near and len(names) > _SHOWN:
    hint += f" and {len(names) - _SHOWN} more"
  return UserError(f"unknown {kind} {name!r}; {hint}")


def nearest(
  name: str, names: Iterable[str], *, cutoff: float = 0.5
) -> List[str]:
  """Up to three names that somebody who wrote `name` may have meant.

  First those with the same last part, `learning_rate` for
  `optimizer.learning_rate`, or whose last part `name` has the initials of,
  `optimizer.lr`; then those that are spelt alike.

  Args:
    name: what came.
    names: what there is.
    cutoff: how alike in spelling, from 0 to 1.

  Returns:
    The best first; none if nothing is like it.
  """
  folded = {candidate.lower(): candidate for candidate in names}
  group, _, field = name.lower().rpartition(".")
  short = []
  for candidate in folded:
    there, _, last = candidate.rpartition(".")
    initials = "".join(word[0] for word in last.split("_") if word)
    if (field == last and candidate != name.lower()) or (
      len(field) > 1 and field == initials and group in ("", there)
    ):
      short.append(candidate)
  near = short or difflib.get_close_matches(
    name.lower(), folded, n=3, cutoff=cutoff
  )
  return [folded[match] for match in near[:3]]
