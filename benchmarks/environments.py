"""Steps a second of `atari.load` beside what it stands on.

Measures, in turns so that all see the same machine:
  ours: `atari.load` (time steps, raw rewards, lives, checked actions);
  raw: `ale_py.vector_env.AtariVectorEnv` with the same games;
  single: one Gymnasium environment with `AtariPreprocessing` and frame stack
    (needs OpenCV: `pip install opencv-python-headless`).

  python benchmarks/environments.py [--game Breakout] [--seconds 10]
"""

import argparse
import time

import ale_py
import gymnasium
import numpy as np
from ale_py import vector_env
from gymnasium import wrappers

from tf_mmdrl.environments import atari, names

_TURN = 10  # steps before the next one has its turn
_SIZES = (1, 8, 16)
_BAR = 0.9


def _ours(game, num_envs):
  env = atari.load(game, num_envs=num_envs, seed=0)
  env.reset()
  return env.step, env.action_spec().maximum + 1


def _raw(game, num_envs):
  env = vector_env.AtariVectorEnv(
    atari.rom_id(game),
    num_envs,
    noop_max=31,
    reward_clipping=False,
    use_fire_reset=False,
  )
  env.reset(seed=0)
  return env.step, env.single_action_space.n


def _single(game):
  gymnasium.register_envs(ale_py)
  name = next(
    n for n, rom in names.atari_games().items() if rom == atari.rom_id(game)
  )
  env = gymnasium.make(
    f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0
  )
  env = wrappers.FrameStackObservation(wrappers.AtariPreprocessing(env), 4)
  env.reset(seed=0)

  def step(action):
    *_, terminated, truncated, _ = env.step(action[0])
    if terminated or truncated:
      env.reset()

  return step, env.action_space.n


def _times(step, actions):
  """[T] seconds of each step."""
  times = []
  for action in actions:
    start = time.perf_counter()
    step(action)
    times.append(time.perf_counter() - start)
  return times


def _measure(game, num_envs, seconds):
  """Steps a second of each, all environments together.

  From the time that the fastest tenth of the steps keep to: other work on the
  machine only ever makes a step slower, the same for all or not.
  """
  contestants = {"ours": _ours(game, num_envs), "raw": _raw(game, num_envs)}
  try:
    contestants["single"] = _single(game)
  except gymnasium.error.DependencyNotInstalled as error:
    print(f"# no single environment: {error}")
  times = {name: [] for name in contestants}
  rng = np.random.RandomState(0)
  end = time.perf_counter() + seconds
  while time.perf_counter() < end:
    for name, (step, num_actions) in contestants.items():
      actions = rng.randint(num_actions, size=(_TURN, num_envs))
      times[name] += _times(step, actions)
  return {
    name: (1 if name == "single" else num_envs) / np.quantile(each, 0.1)
    for name, each in times.items()
  }


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--game", default="Breakout")
  parser.add_argument("--seconds", type=float, default=10.0)
  args = parser.parse_args()
  print(f"{args.game}: agent steps a second (x 4 = frames)")
  print("envs      ours       raw  ours/raw    single  ours/single")
  worst = np.inf
  for num_envs in _SIZES:
    rates = _measure(args.game, num_envs, args.seconds)
    ratio = rates["ours"] / rates["raw"]
    worst = min(worst, ratio)
    single = rates.get("single", np.nan)
    print(
      f"{num_envs:4d}{rates['ours']:10.0f}{rates['raw']:10.0f}{ratio:10.2f}"
      f"{single:10.0f}{rates['ours'] / single:13.2f}"
    )
  print(f"bar ours/raw >= {_BAR}: {'met' if worst >= _BAR else 'NOT met'}")


if __name__ == "__main__":
  main()
