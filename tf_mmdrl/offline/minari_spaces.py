"""The spaces in Minari's metadata: what observations and actions look like."""

import io
import json
import pathlib
import re
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

import numpy as np

from tf_mmdrl.core import optional
from tf_mmdrl.offline import dataset
from tf_mmdrl.offline.dataset import Description

Space = Dict[str, Any]
_SMALLEST_PICTURE = 32  # Minari stores pictures from this size on as JPEGs


class Spaces(NamedTuple):
  """What the metadata says.

  Attributes:
    num_actions: A.
    first_action: the number of the first one in the file.
    shape: of one observation, as it is read.
    dtype: of its numbers.
    space: of observations, as Minari describes it.
  """

  num_actions: int
  first_action: int
  shape: Tuple[int, ...]
  dtype: np.dtype
  space: Space

  def observations(self, get: Callable[[str], Any]) -> np.ndarray:
    """[T + 1, ...] observations of an episode.

    Args:
      get: from the place of a leaf within the space, such as "/key", to what
        the file has there.

    Returns:
      The array itself, or the flat concatenation of a nested space's leaves.
    """
    parts = [_decoded(leaf, get(key)) for key, leaf in _leaves(self.space)]
    if self.space["type"] not in ("Dict", "Tuple"):
      return parts[0].astype(self.dtype, copy=False)
    flat = [part.reshape([len(part), -1]) for part in parts]
    return np.concatenate(flat, axis=1).astype(self.dtype)


def parse(metadata: Dict[str, Any], path: pathlib.Path) -> Spaces:
  """The spaces of a data set; raises if there is nothing to learn from them."""
  found = []
  for name in ("action_space", "observation_space"):
    try:
      found.append(json.loads(metadata[name]))
    except (KeyError, TypeError, ValueError):
      raise dataset.broken(
        path, f"its metadata has no {name} that can be read"
      ) from None
  action, observation = found
  if action["type"] != "Discrete":
    raise dataset.broken(
      path,
      "a discrete action space is wanted, got"
      f" {action['type']}{action.get('shape', '')}; continuous actions are not"
      " supported",
    )
  leaves = [leaf for _, leaf in _leaves(observation)]
  for leaf in leaves:
    if leaf["type"] not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
      raise dataset.broken(
        path, f"observations of {leaf['type']} cannot be learnt from"
      )
  if len(leaves) == 1 and observation["type"] not in ("Dict", "Tuple"):
    shape, dtype = _shape(observation), _dtype(observation)
  else:
    shape = (sum(int(np.prod(_shape(leaf))) for leaf in leaves),)
    dtype = np.dtype(np.float32)
  return Spaces(
    int(action["n"]), int(action.get("start", 0)), shape, dtype, observation
  )


def metadata(description: Description) -> Dict[str, str]:
  """The spaces of a data set that is written."""
  dtype, shape = description.observation_dtype, description.observation_shape
  low, high = -np.inf, np.inf
  if dtype.kind in "iu":
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
  box = {
    "type": "Box",
    "dtype": str(dtype),
    "shape": list(shape),
    "low": np.full(shape, low).tolist(),
    "high": np.full(shape, high).tolist(),
  }
  discrete = {
    "type": "Discrete",
    "dtype": "int64",
    "start": 0,
    "n": description.num_actions,
  }
  return {
    "observation_space": json.dumps(box),
    "action_space": json.dumps(discrete),
  }


def environment(metadata: Dict[str, Any]) -> Optional[str]:
  """The id of the environment that was played, if the metadata names it."""
  try:
    return str(json.loads(metadata["env_spec"])["id"])
  except (KeyError, TypeError, ValueError):
    return None


def identifier(name: str) -> str:
  """An id that Minari can read: words, and a version at the end."""
  word = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "data"
  return word if re.search(r"-v\d+$", word) else f"{word}-v0"


def _leaves(space: Space, key: str = "") -> Iterator[Tuple[str, Space]]:
  """The parts of a nested space, in Gymnasium's order when it flattens."""
  if space["type"] == "Dict":
    for name in space["subspaces"]:
      yield from _leaves(space["subspaces"][name], f"{key}/{name}")
  elif space["type"] == "Tuple":
    for index, part in enumerate(space["subspaces"]):
      yield from _leaves(part, f"{key}/_index_{index}")
  else:
    yield key, space


def _shape(space: Space) -> Tuple[int, ...]:
  if space["type"] == "Box":
    return tuple(space["shape"])
  if space["type"] == "MultiDiscrete":
    return np.shape(space["nvec"])
  return tuple(np.atleast_1d(space["n"]))


def _dtype(space: Space) -> np.dtype:
  """Numbers that a network takes: float64 becomes float32."""
  dtype = np.dtype(space.get("dtype", "float32"))
  if space["type"] != "Box" or dtype.kind == "f":
    return np.dtype(np.float32)
  return dtype


def _decoded(space: Space, stored: Any) -> np.ndarray:
  """What a leaf's numbers are: pictures from JPEGs, one-hot from Discrete."""
  if space["type"] == "Discrete":
    index = np.asarray(stored[()], np.int64) - int(space.get("start", 0))
    return np.eye(space["n"], dtype=np.float32)[index]
  if space["type"] == "Box" and _is_picture(space):
    return _pictures(stored[()])
  return np.asarray(stored[()])


def _is_picture(space: Space) -> bool:
  shape = space["shape"]
  return (
    space["dtype"] == "uint8"
    and len(shape) in (2, 3)
    and min(shape[:2]) >= _SMALLEST_PICTURE
    and np.min(space["low"]) == np.max(space["low"]) == 0
    and np.min(space["high"]) == np.max(space["high"]) == 255
  )


def _pictures(rows: np.ndarray) -> np.ndarray:
  """[T, H, W(, 3)] pictures of T JPEGs."""
  image = optional.require("PIL.Image", use="pictures", extra="offline")
  return np.stack(
    [
      np.asarray(image.open(io.BytesIO(bytes(row)), formats=["JPEG"]))
      for row in rows
    ]
  )
