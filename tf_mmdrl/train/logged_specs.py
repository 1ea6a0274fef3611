"""Specs of logged data, for agents that have no environment."""

import pathlib
from typing import Optional, Sequence

import numpy as np
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors, whole_files

_FILE = "data.json"  # in the directory of a run


class LoggedSpecs:
  """What the parts of a run want to know of an environment."""

  def __init__(
    self,
    shape: Sequence[int],
    dtype: np.dtype,
    num_actions: int,
    reward_size: int = 0,
  ):
    """Makes the specs.

    Args:
      shape: of an observation.
      dtype: of its numbers; floats of any size are learnt from as float32.
      num_actions: A.
      reward_size: D of vector rewards; 0 for plain numbers.
    """
    kind = np.dtype(dtype)
    dtype = np.dtype(np.float32) if kind.kind == "f" else kind
    self._content = {
      "shape": list(map(int, shape)),
      "dtype": dtype.name,
      "num_actions": num_actions,
      "reward_size": reward_size,
    }
    self._observation = array_spec.ArraySpec(shape, dtype, "observation")
    if dtype.kind != "f":
      low, high = _limits(dtype)
      self._observation = array_spec.BoundedArraySpec(
        shape, dtype, low, high, "observation"
      )
    self._num_actions = num_actions
    self._reward = array_spec.ArraySpec(
      [reward_size] if reward_size else [], np.float32, "reward"
    )

  def observation_spec(self) -> array_spec.ArraySpec:
    """Of one observation."""
    return self._observation

  def time_step_spec(self) -> ts.TimeStep:
    """Of one time step."""
    return ts.time_step_spec(self._observation, self._reward)

  def reward_spec(self) -> array_spec.ArraySpec:
    """A number, or a vector."""
    return self._reward

  def action_spec(self) -> array_spec.BoundedArraySpec:
    """A whole number from 0."""
    return array_spec.BoundedArraySpec([], np.int64, 0, self._num_actions - 1)

  def write(self, directory: pathlib.Path) -> None:
    """Writes them into the directory of a run."""
    whole_files.write_json(directory / _FILE, self._content)


def read(directory: pathlib.Path) -> Optional[LoggedSpecs]:
  """Those of a run that learns from data; None if it has none."""
  path = directory / _FILE
  if not path.exists():
    return None
  try:
    return LoggedSpecs(**whole_files.read_json(path))
  except (TypeError, ValueError, whole_files.DamagedFileError) as error:
    raise errors.UserError(f"{str(path)!r} cannot be read: {error}") from None


def _limits(dtype: np.dtype) -> tuple:
  if dtype.kind == "b":
    return False, True
  info = np.iinfo(dtype)
  return info.min, info.max
