"""Any Gymnasium environment as a TF-Agents `PyEnvironment`."""

import functools
import warnings
from typing import Any, Optional, Union

import gymnasium
import numpy as np
from gymnasium import vector
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import errors
from tf_mmdrl.environments import checked, environment, snapshot, spaces
from tf_mmdrl.environments.accrued_rewards import AccruedRewards


class GymnasiumWrapper(environment.Environment):
  """A Gymnasium environment that TF-Agents can drive.

  `terminated` becomes LAST with discount 0 and `truncated` LAST with discount
  1; the step after LAST ignores its action and is the FIRST of a new episode.

  A vector environment becomes a batched one: its NEXT_STEP autoreset is this
  very rule, for each of its environments.

  An environment with a one-dimensional `reward_space`, as mo-gymnasium's have,
  gives rewards that are vectors [D].
  """

  def __init__(
    self,
    env: Union[gymnasium.Env, vector.VectorEnv],
    *,
    seed: Optional[int] = None,
  ):
    """Wraps an environment.

    Args:
      env: the Gymnasium environment or vector environment; the wrapper closes
        it.
      seed: goes to the first `reset(seed=...)`; later episodes continue that
        stream, so equal seeds and actions give equal episodes. In a vector
        environment the i-th starts with seed + i, as Gymnasium has it.
    """
    self._batch = (env.num_envs,) if isinstance(env, vector.VectorEnv) else ()
    super().__init__(seed=seed, handle_auto_reset=not self._batch)
    self._env = env
    self._reward_shape = _reward_shape(env)
    if isinstance(env, vector.VectorEnv):
      _require_next_step(env)
      _check_each(env, self._reward_shape)
      observation_space = env.single_observation_space
      self._action_space = env.single_action_space
    else:
      observation_space = env.observation_space
      self._action_space = env.action_space
    self._observation_spec = spaces.spec_from_space(
      observation_space, "observation"
    )
    self._action_spec = spaces.spec_from_space(self._action_space, "action")
    if seed is not None:
      _seed_spaces(env, seed)

  @property
  def gymnasium_env(self) -> Any:
    """The wrapped Gymnasium environment."""
    return self._env

  @property
  def batched(self) -> bool:
    """Whether this wraps a vector environment."""
    return bool(self._batch)

  @property
  def batch_size(self) -> Optional[int]:
    """B, the number of environments in the vector, or None."""
    return self._batch[0] if self._batch else None

  def observation_spec(self) -> types.NestedArraySpec:
    """The observation space as array specs."""
    return self._observation_spec

  def action_spec(self) -> types.NestedArraySpec:
    """The action space as array specs."""
    return self._action_spec

  def reward_spec(self) -> types.NestedArraySpec:
    """A number, or a vector [D] of numbers."""
    return array_spec.ArraySpec(self._reward_shape, np.float32, "reward")

  def render(self, mode: str = "rgb_array") -> Any:
    """The picture of the current state, [H, W, 3] uint8; a tuple of B."""
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

  def get_state(self) -> dict[str, Any]:
    """The exact state, if the environment is Python through and through.

    Environments that draw from a module's global generator, against
    Gymnasium's rules, are the one case in which this cannot be known.
    """
    try:
      environment = snapshot.capture(self._env)
    except snapshot.CannotCaptureError as error:
      raise self._no_state(f"has a part with no plain form, {error}") from error
    step = self._current_time_step
    return {
      "environment": environment,
      "time_step": snapshot.capture(None if step is None else tuple(step)),
      "next_seed": snapshot.capture(self._next_seed),
    }

  def set_state(self, state: dict[str, Any]) -> None:
    """Continues exactly as the environment that gave this state would have."""
    self._env.reset()  # makes the attributes that only an episode has
    snapshot.restore(self._env, state["environment"])
    step = snapshot.restore(None, state["time_step"])
    self._current_time_step = None if step is None else ts.TimeStep(*step)
    self._next_seed = snapshot.restore(None, state["next_seed"])
    self._info = {}

  def _reset(self) -> ts.TimeStep:
    result = checked.calling(self._env.reset, seed=self._next_seed)
    checked.check_reset(result, self._env.observation_space)
    observation, self._info = result
    self._next_seed = None
    return ts.restart(
      spaces.to_arrays(observation, self._observation_spec),
      self.batch_size,
      self.reward_spec() if self._reward_shape else None,
    )

  def _step(self, action: types.NestedArray) -> ts.TimeStep:
    # Only ever true in a vector: TF-Agents resets a single environment itself.
    first = self.current_time_step().is_last()
    action = spaces.to_gymnasium(
      action, self._action_space, self._action_spec, self._batch
    )
    result = checked.calling(self._env.step, action)
    if not self._batch:
      checked.check_step(
        result, self._env.observation_space, self._reward_shape
      )
    observation, reward, terminated, truncated, self._info = result
    no_reward = np.expand_dims(first, -1) if self._reward_shape else first
    return ts.TimeStep(
      spaces.step_type(first, np.logical_or(terminated, truncated)),
      np.where(no_reward, 0, np.asarray(reward)).astype(np.float32),
      np.where(first, 1, np.logical_not(terminated)).astype(np.float32),
      spaces.to_arrays(observation, self._observation_spec),
    )


def _reward_shape(env: Any) -> tuple[int, ...]:
  """() of rewards that are numbers, (D,) of vectors."""
  single = env.unwrapped
  if isinstance(single, vector.SyncVectorEnv):
    single = single.envs[0].unwrapped
  space = getattr(single, "reward_space", None)
  if space is None or not space.shape:
    return ()
  if len(space.shape) > 1:
    raise errors.UserError(
      f"rewards must be numbers or vectors, got arrays of {space.shape};"
      " flatten them in the environment"
    )
  if isinstance(env, vector.VectorEnv):
    if not isinstance(env.unwrapped, vector.SyncVectorEnv):
      raise errors.UserError(
        "vector rewards want environments that are stepped one after another,"
        f" got {type(env.unwrapped).__name__}; pass vectorization_mode='sync'"
      )
    # Gymnasium makes room for one number of each.
    env.unwrapped._rewards = np.zeros((env.num_envs, *space.shape), np.float64)
  return space.shape


def _check_each(env: vector.VectorEnv, reward_shape: tuple[int, ...]) -> None:
  """Checks single environments before a vector converts what they give."""
  if type(env.unwrapped) is vector.SyncVectorEnv:
    env.unwrapped.envs = [
      each
      if isinstance(each, checked.Checked)
      else checked.Checked(each, reward_shape)
      for each in env.unwrapped.envs
    ]


def _seed_spaces(env: Any, seed: int) -> None:
  """Spaces can draw too, and would seed themselves from the system."""
  for each in (env, *getattr(env, "envs", ())):
    for kind in ("action_space", "observation_space"):
      getattr(each, kind).seed(seed)
      if hasattr(each, f"single_{kind}"):
        getattr(each, f"single_{kind}").seed(seed)


def _require_next_step(env: vector.VectorEnv) -> None:
  mode = env.metadata.get("autoreset_mode")
  if mode != vector.AutoresetMode.NEXT_STEP:
    raise errors.UserError(
      "a vector environment must reset at the step after an episode's end, as"
      f" TF-Agents does, this one has autoreset_mode={mode}; make it with"
      " autoreset_mode=AutoresetMode.NEXT_STEP"
    )


def load(
  env_id: str,
  *,
  num_envs: Optional[int] = None,
  seed: Optional[int] = None,
  accrued_gamma: Optional[float] = None,
  **options: Any,
) -> GymnasiumWrapper:
  """Makes a registered Gymnasium environment for TF-Agents.

  Args:
    env_id: the id Gymnasium knows it by, for example `"CartPole-v1"`.
    num_envs: B, to step that many at once; without it, one that is not batched.
    seed: equal seeds and actions give equal episodes.
    accrued_gamma: if given, observations end with the rewards earned so far,
      discounted by this; see `accrued_rewards`.
    **options: go to `gymnasium.make` or `make_vec`: `render_mode`,
      `max_episode_steps`, `vectorization_mode` and the environment's own.

  Returns:
    The environment; batched if `num_envs` was given.
  """
  wrappers = []
  if accrued_gamma is not None:
    # No lambda: exact states can be saved of a partial.
    wrappers.append(functools.partial(AccruedRewards, gamma=accrued_gamma))
  if num_envs is None:
    env = _make(gymnasium.make, env_id, **options)
    for wrap in wrappers:
      env = wrap(env)
  else:
    more: dict[str, Any] = {}
    if wrappers:  # of each environment: not for those that are vectors
      more = {"wrappers": wrappers, "vectorization_mode": "sync"}
    options = {**options, **more}
    env = _make(gymnasium.make_vec, env_id, num_envs=num_envs, **options)
  return GymnasiumWrapper(env, seed=seed)


def _make(maker: Any, env_id: str, **options: Any) -> Any:
  """Calls `gymnasium.make` or `make_vec`; its errors say what to do."""
  try:
    with warnings.catch_warnings():
      # Of bounds that were written as Python's floats: nobody can act on it.
      warnings.filterwarnings("ignore", ".*precision lowered by casting")
      return maker(env_id, **options)
  except ModuleNotFoundError as error:
    raise errors.UserError(f"{env_id!r} cannot be made: {error}") from error
  except TypeError as error:
    is_option = "unexpected keyword argument" in str(error)
    reason = "has no such option" if is_option else "cannot be made"
    raise errors.UserError(f"{env_id!r} {reason}: {error}") from error
  except gymnasium.error.UnregisteredEnv as error:
    raise errors.unknown_name(
      "environment", env_id, gymnasium.registry
    ) from error
  except gymnasium.error.DeprecatedEnv as error:
    raise errors.UserError(f"{env_id!r} is out of date: {error}") from error
  except gymnasium.error.DependencyNotInstalled as error:
    raise errors.UserError(f"{env_id!r} lacks a package: {error}") from error
  except errors.UserError:
    raise
  except Exception as error:  # whatever a stranger's code raises
    raise errors.UserError(
      f"{env_id!r} cannot be made: {type(error).__name__}: {error}"
    ) from error
