"""Trains the policies of the zoo, scores them, and puts them into the package.

  python benchmarks/zoo.py [--only minatar-breakout,cartpole]

Each is trained by its command below; run it again and it goes on. Of the best
and the newest policy that a run keeps, the one with the better evaluation is
taken, and scored on fresh games, so that the choice does not flatter it.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import numpy as np

import tf_mmdrl.zoo
from tf_mmdrl import serving
from tf_mmdrl.cli import quiet
from tf_mmdrl.core import whole_files
from tf_mmdrl.serving import manifests

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
with quiet.loading():
  from tf_mmdrl.train import playing

_MINATAR = ("asterix", "breakout", "freeway", "seaquest", "space-invaders")
TRAIN = {
  f"minatar-{game}": "mmdrl train --preset quickstart --env MinAtar/"
  f"{game.title().replace('-', '')} --seed 101 --steps 200000"
  for game in _MINATAR
}
for _name, _env, _steps in (
  ("cartpole", "CartPole-v1", 60_000),
  ("lunarlander", "LunarLander-v3", 200_000),
):
  TRAIN[_name] = (
    f"mmdrl train --preset classic --env {_env} --seed 0 --steps {_steps}"
  )
_EPISODES, _SEED = 100, 1000  # the fresh games

_ZOO = pathlib.Path(tf_mmdrl.zoo.__file__).parent


def main():
  """Trains what is left, and writes the zoo."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--only", default=",".join(TRAIN))
  parser.add_argument("--run-dir", default="runs/zoo")
  args = parser.parse_args()
  for name in args.only.split(","):
    run = pathlib.Path(args.run_dir, name)
    line = [*shlex.split(TRAIN[name])[1:], "--run-dir", str(run)]
    code = subprocess.call([sys.executable, "-m", "tf_mmdrl", *line])
    if code:
      return code
    put(name, run / "export")
  return 0


def put(name, exports):
  """Copies the better policy of a run, and writes what it scores."""
  made = {n: serving.metadata(exports, n) for n in serving.versions(exports)}
  number = max(made, key=lambda n: (made[n]["score"] or -np.inf, n))
  target = _ZOO / "exports" / name
  shutil.rmtree(target, ignore_errors=True)
  shutil.copytree(exports / str(number), target / str(number))
  policy = playing.open_export(target)
  config = playing.for_episodes(
    policy.config.replace(system=dict(seed=_SEED)), str(_EPISODES)
  )
  scores = playing.evaluate(policy, config).scores
  manifest = (target / str(number) / manifests.MANIFEST).read_bytes()
  entry = tf_mmdrl.zoo.Entry(
    environment=policy.config.environment.name,
    agent=policy.config.agent.name,
    step=number,
    train=TRAIN[name],
    commit=made[number]["git_commit"],
    seed=policy.config.system.seed,
    score=float(np.mean(scores)),
    error=float(np.std(scores, ddof=1) / np.sqrt(len(scores))),
    episodes=len(scores),
    games_seed=_SEED,
    sha256=whole_files.digest(manifest),
  )
  listed = tf_mmdrl.zoo.entries() | {name: entry}
  content = {key: one._asdict() for key, one in sorted(listed.items())}
  text = json.dumps(content, indent=2) + "\n"
  whole_files.write(_ZOO / "zoo.json", text.encode())
  print(f"zoo:{name}: step {number}, {entry.score:.2f} +- {entry.error:.2f}")


if __name__ == "__main__":
  sys.exit(main())
