"""What an environment gives, held to what it said that it would give.

Gymnasium's vector environments write whatever comes into arrays: a reward that
is a text, or an observation of another kind of number, would be converted
silently. So each single environment is checked before that.
"""

import contextlib
import numbers
import time
from typing import Any, Iterator

import gymnasium
import numpy as np
from gymnasium import spaces

from tf_mmdrl.core import errors

# When each call of an environment that is under way began.
_under_way: dict[object, float] = {}


class MisbehavedError(errors.BrokenRunError):
  """An environment failed, or gave what it should not; the text says what."""


class Checked(gymnasium.Wrapper):
  """Raises `MisbehavedError` instead of passing on what does not fit."""

  def __init__(self, env: gymnasium.Env, reward_shape: tuple[int, ...] = ()):
    """Wraps an environment whose rewards are numbers, or vectors (D,)."""
    super().__init__(env)
    self._reward_shape = reward_shape

  def reset(self, *, seed=None, options=None):
    """Starts an episode."""
    result = calling(self.env.reset, seed=seed, options=options)
    check_reset(result, self.observation_space)
    return result

  def step(self, action):
    """Plays one step."""
    result = calling(self.env.step, action)
    check_step(result, self.observation_space, self._reward_shape)
    return result


def calling(function: Any, *arguments: Any, **options: Any) -> Any:
  """Calls an environment; what it raises becomes a `MisbehavedError`."""
  call = object()
  _under_way[call] = time.monotonic()
  try:
    return function(*arguments, **options)
  except errors.UserError:
    raise
  except Exception as error:  # whatever a stranger's code raises
    text = str(error).strip().split("\n")[0]
    raise MisbehavedError(
      f"the environment raised {type(error).__name__}"
      f"{f' ({text})' if text else ''} in {function.__name__}"
    ) from error
  finally:
    del _under_way[call]


@contextlib.contextmanager
def telling(where: str) -> Iterator[None]:
  """Adds where it happened, and what to do, to a `MisbehavedError`."""
  try:
    yield
  except MisbehavedError as error:
    raise MisbehavedError(f"{error}, {where}") from error


def longest_call() -> float:
  """Seconds for which an environment has not answered; 0 if none is asked."""
  now = time.monotonic()
  return max((now - began for began in [*_under_way.values()]), default=0.0)


def check_reset(result: Any, space: spaces.Space) -> None:
  """Raises unless `reset` returned an observation of the space and a dict."""
  if not isinstance(result, tuple) or len(result) != 2:
    raise MisbehavedError(
      "the environment's reset must return an observation and a dict, it"
      f" returned {_shown(result)}"
    )
  check_observation(result[0], space)


def check_step(
  result: Any, space: spaces.Space, reward_shape: tuple[int, ...] = ()
) -> None:
  """Raises unless `step` returned its five parts, each of its kind."""
  if not isinstance(result, tuple) or len(result) != 5:
    raise MisbehavedError(
      "the environment's step must return an observation, a reward,"
      f" terminated, truncated and a dict, it returned {_shown(result)}"
    )
  observation, reward, terminated, truncated, _ = result
  check_observation(observation, space)
  if reward_shape:
    _check_vector_reward(reward, reward_shape)
  elif not isinstance(reward, (numbers.Real, np.bool_)) and not (
    isinstance(reward, np.ndarray)
    and not reward.shape
    and reward.dtype.kind in "fiub"
  ):
    raise MisbehavedError(
      f"the environment's reward must be a number, it is {_shown(reward)}"
    )
  for name, value in (("terminated", terminated), ("truncated", truncated)):
    if np.shape(value) or np.asarray(value).dtype.kind not in "biu":
      raise MisbehavedError(
        f"the environment's {name} must be true or false, it is {_shown(value)}"
      )


def _check_vector_reward(reward: Any, shape: tuple[int, ...]) -> None:
  try:
    array = np.asarray(reward)
  except ValueError:  # lists of unequal lengths
    array = np.asarray(None)
  if array.shape != shape or array.dtype.kind not in "fiub":
    raise MisbehavedError(
      f"the environment's reward must be a vector of {shape[0]} numbers, as its"
      f" reward_space says, it is {_shown(reward)}"
    )


def check_observation(value: Any, space: spaces.Space) -> None:
  """Raises unless a value has the shape and the kind of number of a space."""
  if isinstance(space, spaces.Dict):
    for key, part in space.spaces.items():
      if not isinstance(value, dict) or key not in value:
        raise _bad_observation(f"a dict with {key!r}", value)
      check_observation(value[key], part)
  elif isinstance(space, spaces.Tuple):
    if not isinstance(value, tuple) or len(value) != len(space.spaces):
      raise _bad_observation(f"a tuple of {len(space.spaces)}", value)
    for item, part in zip(value, space.spaces):
      check_observation(item, part)
  elif space.shape is not None and space.dtype is not None:
    _check_array(value, space.shape, space.dtype)


def _check_array(value: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
  try:
    array = np.asarray(value)
  except ValueError:  # lists of unequal lengths
    raise _bad_observation(f"of shape {shape} and {dtype}", value) from None
  fits = np.can_cast(array.dtype, dtype, "same_kind") or (
    array.dtype.kind in "iub" and dtype.kind in "iub"
  )
  if array.shape != shape or not fits:
    raise _bad_observation(f"of shape {shape} and {dtype}", array)


def _bad_observation(wanted: str, came: Any) -> MisbehavedError:
  return MisbehavedError(
    f"the environment's observation must be {wanted}, it is {_shown(came)}"
  )


def _shown(value: Any) -> str:
  if isinstance(value, np.ndarray) and value.size > 1:
    return f"an array of shape {value.shape} and {value.dtype}"
  text = repr(value)
  return text if len(text) <= 60 else f"{text[:57]}..."
