"""Names of environments: what each is of, and whether it can be made here.

Needs no TensorFlow, so that a misspelt name is told at once.
"""

import functools
import importlib

import gymnasium
from ale_py import roms

from tf_mmdrl.core import errors, game_names, optional
from tf_mmdrl.environments import mazes

# The name of each MinAtar game, and of its module in the package.
MINATAR_GAMES = {
  "Asterix": "asterix",
  "Breakout": "breakout",
  "Freeway": "freeway",
  "Seaquest": "seaquest",
  "SpaceInvaders": "space_invaders",
}
# These have no single-player mode, so ale-py registers no environment either.
_TWO_PLAYERS = frozenset(["combat", "joust", "maze_craze", "warlords"])
# Part of Gymnasium's entry point -> what to import, and our extra for it.
_PACKAGES = {"envs.box2d": ("Box2D", "box2d")}
# Some of mo-gymnasium's, for a message where the package is not installed.
_VECTOR_REWARDS = (
  "deep-sea-treasure-v0",
  "resource-gathering-v0",
  "fishwood-v0",
  "four-room-v0",
  "minecart-v0",
  "fruit-tree-v0",
)


def family(name: str) -> str:
  """`"atari"`, `"chain"`, `"gymnasium"`, `"maze"` or `"minatar"`."""
  first = name.partition("/")[0].lower()
  if first in ("chain", "maze", "minatar"):
    return first
  if _is_gymnasium(name) or has_vector_rewards(name):
    return "gymnasium"
  if first not in ("ale", "atari") and not _is_atari(name):
    raise errors.unknown_name("environment", name, _all_names())
  return "atari"


def require(name: str) -> None:
  """Raises if there is no such environment, or its package is missing."""
  kind, rest = family(name), name.partition("/")[2]
  if kind == "minatar":
    game_names.find("MinAtar game", rest, MINATAR_GAMES)
    optional.require_there("minatar", use="MinAtar games", extra="minatar")
  elif kind == "maze":
    maze, _, observation = rest.partition("/")
    if maze not in mazes.MAPS:
      raise errors.unknown_name("maze", maze, mazes.MAPS)
    if observation not in ("", "pixels"):
      raise errors.unknown_name("maze", rest, [maze, f"{maze}/pixels"])
  elif kind == "atari":
    game_names.find("Atari game", name, atari_games())
  elif kind == "gymnasium" and name in gymnasium.registry:
    place = str(gymnasium.registry[name].entry_point)
    for part, (module, extra) in _PACKAGES.items():
      if part in place:
        use = "Gymnasium's physics games"
        optional.require_there(module, use=use, extra=extra)


def has_vector_rewards(name: str) -> bool:
  """Whether a name is one of mo-gymnasium's, which registers it if so."""
  if name in _VECTOR_REWARDS:
    optional.require("mo_gymnasium", use="vector rewards", extra="mo")
  elif name not in gymnasium.registry:
    if ":" in name or "/" in name or _is_atari(name):
      return False
    if not optional.is_there("mo_gymnasium"):
      return False
    importlib.import_module("mo_gymnasium")
  spec = gymnasium.registry.get(name)
  return spec is not None and "mo_gymnasium" in str(spec.entry_point)


@functools.lru_cache(maxsize=1)
def atari_games() -> dict[str, str]:
  """The name of each game, `"SpaceInvaders"`, and ale-py's id for it."""
  return {
    rom.title().replace("_", ""): rom
    for rom in sorted(roms.get_all_rom_ids())
    if rom not in _TWO_PLAYERS
  }


def _is_gymnasium(name: str) -> bool:
  if ":" in name:  # Gymnasium imports the module, which registers it
    return True
  if name.startswith("tf_mmdrl/"):  # ours register when they are loaded
    from tf_mmdrl.environments import chain_environment, minatar  # noqa: F401
  spec = gymnasium.registry.get(name)
  # ale-py registers its games too; they go to its vector environment.
  return spec is not None and "ale_py" not in str(spec.entry_point)


def _is_atari(name: str) -> bool:
  return game_names.key(name) in {
    game_names.key(game) for game in atari_games()
  }


def _all_names() -> list[str]:
  return [
    "chain",
    *atari_games(),
    *(f"MinAtar/{game}" for game in MINATAR_GAMES),
    *(f"maze/{maze}" for maze in mazes.MAPS),
    *(
      env_id
      for env_id, spec in gymnasium.registry.items()
      # Ours have shorter names, and ale-py's are games.
      if not env_id.startswith("tf_mmdrl/")
      and "ale_py" not in str(spec.entry_point)
    ),
  ]
