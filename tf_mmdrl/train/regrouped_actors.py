"""Saved actors whose environments are shared by another number of slots.

Only for runs in free order: in exact order a run depends on the number of its
slots. Games under way are cut short, as at a fresh start: which steps lead from
one slot's games to another one's nobody could play again.
"""

from typing import Any, Dict, List, Sequence

import numpy as np

from tf_mmdrl.core import errors
from tf_mmdrl.environments import snapshot
from tf_mmdrl.train import environment_states


def actors(
  saved: Sequence[Dict[str, Any]], number: int
) -> List[Dict[str, Any]]:
  """The states of `number` slots, made of those of others.

  Args:
    saved: `plain` of `Actor.save` with the `environment`'s, for each slot.
    number: of slots; it divides the number of environments.

  Returns:
    The same for the new slots; no steps are lost, and none are added.
  """
  environments = [one["environment"] for one in saved]
  if any("time_step" not in one for one in environments):
    raise errors.UserError(
      "the checkpoint was made by an earlier version, which can go on with as"
      f" many actors as before only; pass --actors {len(saved)}"
    )
  moments = [snapshot.restore(None, one["time_step"]) for one in environments]
  together = [np.concatenate(arrays) for arrays in zip(*moments)]
  running, kept = (
    [value for one in saved for value in one[name]]
    for name in ("running", "kept")
  )
  size = len(running) // number
  steps = sum(one["step"] for one in saved)
  boundary = max(one.get("boundary", 0) for one in environments)
  found = []
  for slot in range(number):
    own = slice(slot * size, (slot + 1) * size)
    moment = tuple(array[own] for array in together)
    environment = {
      "boundary": boundary,
      "time_step": snapshot.capture(moment),
      environment_states.ANEW: True,
    }
    found.append(
      {
        "step": steps // number + (steps % number if slot == 0 else 0),
        "running": running[own],
        "kept": kept[own],
        "environment": environment,
      }
    )
  return found
