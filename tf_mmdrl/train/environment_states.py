"""Where environments are, as it is kept and as it travels."""

from typing import Any, Dict, List, NamedTuple

import numpy as np

ANEW = "anew"  # in a state: new episodes begin after it
GENERATORS = "generators"  # in a state: where those of the process are
PAST = "past"  # in a state: what led to it, to be played again
OUTSIDE = "outside"  # in a state: digests of what classes and modules keep
WITHIN = "within"  # in a state: digests of attributes


class EnvironmentState(NamedTuple):
  """How to get back to a moment.

  Attributes:
    plain: JSON values.
    actions: [T, B] to play again after the start that `plain` names; T is 0 if
      `plain` is the whole state.
  """

  plain: Dict[str, Any]
  actions: np.ndarray

  @property
  def of_environment(self) -> Dict[str, Any]:
    """`plain` without what is the process's, and how it came here."""
    others = (GENERATORS, PAST, OUTSIDE)
    return {n: v for n, v in self.plain.items() if n not in others}


class Moment(NamedTuple):
  """A moment in the course of environments.

  Attributes:
    start: JSON values, which name what the actions begin at.
    record: [B] actions in turn. It may have grown since.
    num_actions: how many of them led here.
    seen: a checksum of what they led to; of the time step if there are none.
  """

  start: Dict[str, Any]
  record: List[np.ndarray]
  num_actions: int
  seen: int
