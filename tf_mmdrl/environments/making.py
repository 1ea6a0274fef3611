"""One function that makes any environment from its name."""

from typing import Any, Optional

from tf_mmdrl.core import errors
from tf_mmdrl.environments import (
  atari,
  chain_environment,
  environment,
  gymnasium_wrapper,
  mazes,
  minatar,
)
from tf_mmdrl.environments.names import (
  family,
  has_vector_rewards,
  require,
)


def make_environment(
  name: str,
  *,
  num_envs: Optional[int] = None,
  seed: Optional[int] = None,
  protocol: str = "paper",
  evaluation: bool = False,
  max_episode_steps: Optional[int] = None,
  accrued_gamma: Optional[float] = None,
  split_rewards: bool = False,
  **options: Any,
) -> environment.Environment:
  """Makes an environment from its name.

  Args:
    name: an Atari game in any spelling (`"Breakout"`, `"ALE/Pong-v5"`), a
      MinAtar game (`"MinAtar/Breakout"`), the paper's chain (`"chain"`, or
      `"chain/15"` for 15 states), a maze with vector rewards
      (`"maze/exclusive"`, or `"maze/exclusive/pixels"`; see `mazes`), or an id
      of Gymnasium or mo-gymnasium (`"CartPole-v1"`, `"deep-sea-treasure-v0"`,
      or `"my_module:MyEnv-v0"`).
    num_envs: B. Without it Atari games come in eights and the others as one
      environment that is not batched.
    seed: equal seeds and actions give equal episodes.
    protocol: the protocol of Atari games, `"paper"`, `"authors"` or `"sticky"`;
      see `atari.PROTOCOLS`.
    evaluation: whether Atari games are those to evaluate on: whole games with
      their raw rewards.
    max_episode_steps: after how many steps an episode is cut off; as the
      environment itself has it if left out.
    accrued_gamma: if given, observations end with the rewards earned so far,
      discounted by this; for vector rewards and observations that are no
      pictures.
    split_rewards: whether rewards of an Atari game are vectors; see
      `reward_parts`.
    **options: the options of the environment; see `atari.Protocol`,
      `minatar.MinAtar`, `chain_environment.Chain` and `gymnasium.make`.

  Returns:
    The environment.
  """
  kind, rest = family(name), name.partition("/")[2]
  shared = {"num_envs": num_envs, "seed": seed, **options}
  if max_episode_steps is not None:
    shared["max_episode_steps"] = max_episode_steps
  if split_rewards:
    if kind != "atari":
      raise errors.UserError(
        f"environment.split_rewards is for Atari games, got {name!r}; set"
        " environment.split_rewards=false"
      )
    shared["split_rewards"] = True
  if accrued_gamma is not None:
    if kind in ("atari", "minatar"):
      raise errors.UserError(
        "agent.accrued wants an environment whose rewards are vectors, and"
        f" observations that are no pictures, got {name!r}"
      )
    shared["accrued_gamma"] = accrued_gamma
  if kind == "minatar":
    return minatar.load(rest, **shared)
  if kind == "maze":
    require(name)
    maze, _, pixels = rest.partition("/")
    shared["pixels"] = bool(pixels)
    return gymnasium_wrapper.load(mazes.ENV_IDS[maze], **_unchecked(shared))
  if kind == "chain":
    if rest:
      shared["length"] = _length(rest)
    return gymnasium_wrapper.load(chain_environment.ENV_ID, **shared)
  if kind == "gymnasium":
    if has_vector_rewards(name):
      shared = _unchecked(shared)
    return gymnasium_wrapper.load(name, **shared)
  if protocol not in atari.PROTOCOLS:
    raise errors.unknown_name("Atari protocol", protocol, atari.PROTOCOLS)
  if num_envs is None:
    del shared["num_envs"]
  chosen = atari.PROTOCOLS[protocol][evaluation]
  if max_episode_steps is not None:
    steps = shared.pop("max_episode_steps")
    shared["max_frames"] = steps * chosen.frame_skip
  return atari.load(name, protocol=chosen, **shared)


def _length(text: str) -> int:
  if not text.isdigit():
    raise errors.UserError(
      f"a chain's length must be a whole number, got {text!r}; write chain/15"
    )
  return int(text)


def _unchecked(shared: dict[str, Any]) -> dict[str, Any]:
  """Without Gymnasium's checker, to which a reward is one number.

  `checked` checks rewards here.
  """
  return {**shared, "disable_env_checker": True}
