"""Any Gymnasium environment as a TF-Agents `PyEnvironment`."""

from typing import Any, Optional

import gymnasium
import numpy as np
from gymnasium import spaces as gym_spaces
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import errors
from tf_mmdrl.environments import base, spaces

_ZERO = np.zeros((), np.float32)
_ONE = np.ones((), np.float32)


class GymnasiumWrapper(base.Environment):
  """A Gymnasium environment that TF-Agents can drive.

  `terminated` becomes LAST with discount 0 and `truncated` LAST with discount
  1; the step after LAST ignores its action and is the FIRST of a new episode.
  """

  def __init__(self, env: gymnasium.Env, *, seed: Optional[int] = None):
    """Wraps an environment.

    Args:
      env: the Gymnasium environment; the wrapper closes it.
      seed: goes to the first `reset(seed=...)`; later episodes continue that
        stream, so equal seeds and actions give equal episodes.
    """
    super().__init__(seed=seed, handle_auto_reset=True)
    self._env = env
    self._observation_spec = spaces.spec_from_space(
      env.observation_space, "observation"
    )
    self._action_spec = spaces.spec_from_space(env.action_space, "action")

  @property
  def gymnasium_env(self) -> gymnasium.Env:
    """The wrapped Gymnasium environment."""
    return self._env

  def observation_spec(self) -> types.NestedArraySpec:
    """The observation space as array specs."""
    return self._observation_spec

  def action_spec(self) -> types.NestedArraySpec:
    """The action space as array specs."""
    return self._action_spec

  def render(self, mode: str = "rgb_array") -> Any:
    """The picture of the current state, [height, width, 3] uint8."""
    if self._env.render_mode != mode:
      raise errors.UserError(
        f"render(mode={mode!r}) needs an environment made for it, this one has"
        f" render_mode={self._env.render_mode!r}; pass render_mode={mode!r} to"
        " load or gymnasium.make"
      )
    return self._env.render()

  def close(self) -> None:
    """Closes the wrapped environment."""
    self._env.close()

  def _reset(self) -> ts.TimeStep:
    observation, self._info = self._env.reset(seed=self._next_seed)
    self._next_seed = None
    return ts.TimeStep(
      ts.StepType.FIRST,
      _ZERO,
      _ONE,
      spaces.to_arrays(observation, self._observation_spec),
    )

  def _step(self, action: types.NestedArray) -> ts.TimeStep:
    action = spaces.check_action(action, self._action_spec)
    observation, reward, terminated, truncated, self._info = self._env.step(
      _as_gymnasium(action, self._env.action_space)
    )
    return ts.TimeStep(
      ts.StepType.LAST if terminated or truncated else ts.StepType.MID,
      np.asarray(reward, np.float32),
      _ZERO if terminated else _ONE,
      spaces.to_arrays(observation, self._observation_spec),
    )


def _as_gymnasium(action: Any, space: gymnasium.Space) -> Any:
  """The action in the space's own types."""
  if isinstance(space, gym_spaces.Discrete):
    return int(action)  # some environments use it as a dict key
  if isinstance(space, gym_spaces.Dict):
    return {
      key: _as_gymnasium(action[key], part)
      for key, part in space.spaces.items()
    }
  if isinstance(space, gym_spaces.Tuple):
    return tuple(
      _as_gymnasium(item, part) for item, part in zip(action, space.spaces)
    )
  return action.astype(space.dtype, copy=False)  # bool is int8 in the spec


def load(
  env_id: str,
  *,
  seed: Optional[int] = None,
  **options: Any,
) -> GymnasiumWrapper:
  """Makes a registered Gymnasium environment for TF-Agents.

  Args:
    env_id: the id Gymnasium knows it by, for example `"CartPole-v1"`.
    seed: see `GymnasiumWrapper`.
    **options: go to `gymnasium.make`: `render_mode`, `max_episode_steps` and
      the environment's own.

  Returns:
    The environment; not batched.
  """
  return GymnasiumWrapper(make(env_id, **options), seed=seed)


def make(env_id: str, **options: Any) -> gymnasium.Env:
  """`gymnasium.make` with errors that say what to do."""
  try:
    return gymnasium.make(env_id, **options)
  except gymnasium.error.UnregisteredEnv as error:
    raise errors.unknown_name(
      "environment", env_id, gymnasium.registry
    ) from error
  except gymnasium.error.DeprecatedEnv as error:
    raise errors.UserError(f"{env_id!r} is out of date: {error}") from error
  except gymnasium.error.DependencyNotInstalled as error:
    raise errors.UserError(f"{env_id!r} lacks a package: {error}") from error
