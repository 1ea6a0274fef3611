"""Trains the policies of the zoo, scores them, and puts them into the package.

  python benchmarks/zoo.py [--only minatar-breakout,cartpole] [--list]

Each is trained by its command below, in one thread, so that two calls with
other names share two cores. Ctrl-C saves; run it again and it goes on: what is
in the zoo already is left as it is. Of the best and the newest policy that a
run keeps, the one with the better evaluation is taken, and scored on fresh
games, so that the choice does not flatter it.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np

import tf_mmdrl.zoo
from tf_mmdrl import serving
from tf_mmdrl.cli import quiet, train_command
from tf_mmdrl.core import errors, run_files, run_states, whole_files
from tf_mmdrl.serving import manifests
from tf_mmdrl.train import config as configs

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Agent steps; in Asterix hardly anything is learnt in 200,000.
_MINATAR = {
  "asterix": 600_000,
  "breakout": 200_000,
  "freeway": 200_000,
  "seaquest": 200_000,
  "space-invaders": 200_000,
}
TRAIN = {
  f"minatar-{game}": "mmdrl train --preset quickstart --env MinAtar/"
  f"{game.title().replace('-', '')} --seed 101 --steps {steps}"
  for game, steps in _MINATAR.items()
}
TRAIN["cartpole"] = (
  "mmdrl train --preset classic --env CartPole-v1 --seed 0 --steps 60000"
)
TRAIN["lunarlander"] = (
  "mmdrl train --preset classic --env LunarLander-v3 --seed 0 --steps 200000"
)
# The longest by far: over an hour of one core. Its export takes 9 of the 15 MB.
TRAIN["pong"] = "mmdrl train --preset atari --env Pong --seed 0 --steps 250000"
_EPISODES, _SEED = 100, 1000  # the fresh games
_MOST = 15e6  # bytes of all that is in the zoo
_THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")

_ZOO = pathlib.Path(tf_mmdrl.zoo.__file__).parent


def main():
  """Trains what is left, and writes the zoo."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--only", default=",".join(TRAIN), metavar="NAMES")
  parser.add_argument("--run-dir", default="runs/zoo")
  parser.add_argument("--list", action="store_true", help="only what remains")
  args = parser.parse_args()
  wanted = args.only.split(",")
  for name in wanted:
    if name not in TRAIN:
      parser.error(str(errors.unknown_name("policy of the zoo", name, TRAIN)))
  runs = {name: pathlib.Path(args.run_dir, name) for name in wanted}
  for name, run in runs.items():
    print(f"{name}: {state(name, run)}", flush=True)
  if args.list:
    return 0
  for name, run in runs.items():
    if not is_there(name, run):
      code = train(name, run)
      if code:
        return code
      put(name, run / "export")
  return 0


def state(name, run):
  """What remains to be done for a policy."""
  if is_there(name, run):
    return "in the zoo"
  listed = tf_mmdrl.zoo.entries()
  rest = "; the zoo has another one" if name in listed else ""
  if not (run / "config.json").exists():
    return f"not begun{rest}"
  found = run_states.read(run_files.RunFiles(run))
  return f"at step {found.step:,} of {found.steps:,}, {found.activity}{rest}"


def is_there(name, run):
  """Whether the zoo has the policy that its run has come to."""
  entry = tf_mmdrl.zoo.entries().get(name)
  if entry is None or entry.train != TRAIN[name]:
    return False
  if not (run / "config.json").exists():  # trained elsewhere
    return True
  found = run_states.read(run_files.RunFiles(run))
  return found.step >= found.steps and entry.sha256 == _digest(
    run / "export" / str(chosen(run / "export"))
  )


def train(name, run):
  """Trains in one thread; the exit code. Ctrl-C is the run's, which saves."""
  line = [*shlex.split(TRAIN[name])[1:], "--run-dir", str(run)]
  environment = {**os.environ, **dict.fromkeys(_THREADS, "1")}
  process = subprocess.Popen(
    [sys.executable, "-m", "tf_mmdrl", *line],
    env={**environment, "OMP_NUM_THREADS": "1"},
  )
  signal.signal(signal.SIGTERM, lambda *_: process.terminate())
  while True:
    try:
      return process.wait()
    except KeyboardInterrupt:
      pass


def chosen(exports):
  """The number of the policy with the better evaluation; 0 if there is none."""
  made = {n: serving.metadata(exports, n) for n in serving.versions(exports)}
  return max(made, key=lambda n: (made[n]["score"] or -np.inf, n), default=0)


def check(name, made):
  """Raises unless a policy was trained as its command says.

  Args:
    name: of the policy.
    made: the settings of the run that exported it, as JSON values.
  """
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  _, asked = train_command.wanted(
    parser.parse_args(shlex.split(TRAIN[name])[2:])
  )
  other = differences(made, asked)
  if other:
    raise errors.UserError(
      f"the run of {name} has other settings than its command gives:"
      f" {'; '.join(other)}"
    )


def differences(made, asked):
  """The settings of a run that its command does not give; a list of lines.

  Args:
    made: the run's, as JSON values.
    asked: the configuration that the command gives.
  """
  horizon = {"horizon": asked.horizon}  # as it is when a run begins
  run = configs.from_json(made).completed()
  return configs.differences(run, asked.replace(schedule=horizon))


def put(name, exports):
  """Copies the better policy of a run, and writes what it scores."""
  number = chosen(exports)
  made = serving.metadata(exports, number)
  check(name, made["config"])
  with quiet.loading():
    from tf_mmdrl.train import playing
  target = _ZOO / "exports" / name
  shutil.rmtree(target, ignore_errors=True)
  shutil.copytree(exports / str(number), target / str(number))
  _require_room()
  policy = playing.open_export(target)
  config = playing.for_episodes(
    policy.config.replace(system=dict(seed=_SEED)), str(_EPISODES)
  )
  scores = playing.evaluate(policy, config).scores
  entry = tf_mmdrl.zoo.Entry(
    environment=policy.config.environment.name,
    agent=policy.config.agent.name,
    step=number,
    train=TRAIN[name],
    commit=made["git_commit"],
    seed=policy.config.system.seed,
    score=float(np.mean(scores)),
    error=float(np.std(scores, ddof=1) / np.sqrt(len(scores))),
    episodes=len(scores),
    games_seed=_SEED,
    sha256=_digest(target / str(number)),
  )
  listed = tf_mmdrl.zoo.entries() | {name: entry}
  content = {key: one._asdict() for key, one in sorted(listed.items())}
  text = json.dumps(content, indent=2) + "\n"
  whole_files.write(_ZOO / "zoo.json", text.encode())
  print(f"zoo:{name}: step {number}, {entry.score:.2f} +- {entry.error:.2f}")


def _digest(version):
  manifest = version / manifests.MANIFEST
  return whole_files.digest(manifest.read_bytes()) if manifest.exists() else ""


def _require_room():
  size = sum(path.stat().st_size for path in _ZOO.rglob("*") if path.is_file())
  if size > _MOST:
    raise errors.UserError(
      f"the zoo has {size:,} bytes, and {_MOST:,.0f} are the most; leave one"
      " out"
    )


if __name__ == "__main__":
  sys.exit(main())
