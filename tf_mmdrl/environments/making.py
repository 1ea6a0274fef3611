"""One function that makes any environment from its name."""

from typing import Any, Optional

import gymnasium

from tf_mmdrl.core import errors, game_names
from tf_mmdrl.environments import (
  atari,
  chain_environment,
  environment,
  gymnasium_wrapper,
  minatar,
)


def make_environment(
  name: str,
  *,
  num_envs: Optional[int] = None,
  seed: Optional[int] = None,
  protocol: str = "paper",
  evaluation: bool = False,
  max_episode_steps: Optional[int] = None,
  **options: Any,
) -> environment.Environment:
  """Makes an environment from its name.

  Args:
    name: an Atari game in any spelling (`"Breakout"`, `"ALE/Pong-v5"`), a
      MinAtar game (`"MinAtar/Breakout"`), the paper's chain (`"chain"`, or
      `"chain/15"` for 15 states) or a Gymnasium id (`"CartPole-v1"`, or
      `"my_module:MyEnv-v0"`).
    num_envs: B. Without it Atari games come in eights and the others as one
      environment that is not batched.
    seed: equal seeds and actions give equal episodes.
    protocol: of Atari games, `"paper"`, `"authors"` or `"sticky"`; see
      `atari.PROTOCOLS`.
    evaluation: whether Atari games are those to evaluate on: whole games with
      their raw rewards.
    max_episode_steps: after how many steps an episode is cut off; as the
      environment itself has it if left out.
    **options: of the environment; see `atari.Protocol`, `minatar.MinAtar`,
      `chain_environment.Chain` and `gymnasium.make`.

  Returns:
    The environment.
  """
  kind, rest = family(name), name.partition("/")[2]
  shared = {"num_envs": num_envs, "seed": seed, **options}
  if max_episode_steps is not None:
    shared["max_episode_steps"] = max_episode_steps
  if kind == "minatar":
    return minatar.load(rest, **shared)
  if kind == "chain":
    if rest:
      shared["length"] = _length(rest)
    return gymnasium_wrapper.load(chain_environment.ENV_ID, **shared)
  if kind == "gymnasium":
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


def family(name: str) -> str:
  """`"atari"`, `"chain"`, `"gymnasium"` or `"minatar"`, from a name."""
  first = name.partition("/")[0].lower()
  if first in ("chain", "minatar"):
    return first
  if _is_gymnasium(name):
    return "gymnasium"
  if first not in ("ale", "atari") and not _is_atari(name):
    raise errors.unknown_name("environment", name, _all_names())
  return "atari"


def _length(text: str) -> int:
  if not text.isdigit():
    raise errors.UserError(
      f"a chain's length must be a whole number, got {text!r}; write chain/15"
    )
  return int(text)


def _is_gymnasium(name: str) -> bool:
  if ":" in name:  # Gymnasium imports the module, which registers it
    return True
  spec = gymnasium.registry.get(name)
  # ale-py registers its games too; they go to its vector environment.
  return spec is not None and "ale_py" not in str(spec.entry_point)


def _is_atari(name: str) -> bool:
  return game_names.key(name) in {
    game_names.key(game) for game in atari.games()
  }


def _all_names() -> list[str]:
  return [
    "chain",
    *atari.games(),
    *(f"MinAtar/{game}" for game in minatar.GAMES),
    *(env_id for env_id in gymnasium.registry if _is_gymnasium(env_id)),
  ]
