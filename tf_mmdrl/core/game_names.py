"""Names of games as people write them."""

import re
from typing import Mapping

from tf_mmdrl.core import errors


def key(name: str) -> str:
  """What the spellings of a game share: `"spaceinvaders"`.

  `"Space Invaders"`, `"space_invaders"`, `"ALE/SpaceInvaders-v5"`,
  `"SpaceInvadersNoFrameskip-v4"` and `"MinAtar/SpaceInvaders-v1"` are one.
  """
  name = name.rsplit("/", 1)[-1]
  name = re.sub(r"(NoFrameskip|Deterministic)?(-v\d+)?$", "", name)
  return re.sub(r"[\s_-]", "", name).lower()


def find(kind: str, name: str, known: Mapping[str, str]) -> str:
  """What `known` holds for a name in any spelling.

  Args:
    kind: what the name stands for, for the error.
    name: the name in any spelling.
    known: the names as they are shown, and what they mean.

  Returns:
    The value in `known`.
  """
  by_key = {key(shown): value for shown, value in known.items()}
  if key(name) not in by_key:
    raise errors.unknown_name(kind, name, known)
  return by_key[key(name)]
