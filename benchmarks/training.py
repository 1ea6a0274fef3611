"""The end-to-end rate of training beside what its bare updates would allow.

  python benchmarks/training.py [--rounds 40] [--env Pong] [--set ...]
  python benchmarks/training.py --determinism

Atari, 8 environments, one update of batch 32 for 4 steps, Nature network, 200
particles. Rounds of training and of updates alone (on one batch that stays)
take turns in one process, so that the ratio means something on a busy machine.

`--determinism` says what `system.deterministic` costs. TensorFlow can not turn
op determinism off again, so processes with and without it take turns.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import timing  # noqa: F401  (sets the environment before TensorFlow)

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories, presets, run_directory, run_state, trainer
from tf_mmdrl.train.rounds import Rounds

_TURNS = 5  # processes of each kind


def median(times):
  """The median of a list."""
  return sorted(times)[len(times) // 2]


def main():
  """Prints the rates and their ratio."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--rounds", type=int, default=40)
  parser.add_argument("--env", default="Pong")
  parser.add_argument("--set", action="append", default=[])
  parser.add_argument("--determinism", action="store_true")
  args = parser.parse_args()
  if args.determinism:
    compare_determinism(args)
    return
  settings = [f"environment.name={args.env}", "schedule.steps_per_update=4"]
  settings += ["schedule.learning_starts=1000", "schedule.epsilon_start=0.01"]
  config = configs.change(presets.get("atari"), [*settings, *args.set])
  trainer.configure_process(config)
  with tempfile.TemporaryDirectory() as folder:
    directory = run_directory.RunDirectory(pathlib.Path(folder))
    state = run_state.RunState(config, directory)
    measure(config, state, args.rounds)
    state.close()


def compare_determinism(args):
  """Runs this benchmark with and without it in turn, each time anew."""
  rates = {True: [], False: []}
  for turn in range(2 * _TURNS):
    deterministic = turn % 2 == 0
    command = [sys.executable, __file__, "--env", args.env]
    command += ["--rounds", str(args.rounds)]
    for text in [*args.set, f"system.deterministic={deterministic}"]:
      command += ["--set", text]
    printed = subprocess.run(
      command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    (line,) = [x for x in printed.splitlines() if x.startswith("training ")]
    rates[deterministic].append(float(line.split()[1]))
    name = "on" if deterministic else "off"
    print(f"determinism {name:3}  {rates[deterministic][-1]:8.0f} steps/s")
  share = median(rates[True]) / median(rates[False])
  print(f"on / off, medians  {share:8.2f}")


def measure(config, state, rounds):
  """Interleaves whole rounds with bare updates."""
  beta = factories.beta(config, 0)
  state.count(state.play(state.learner.weights(), 200))
  fixed = state.experience.take(beta)
  running = Rounds(state)
  running.play_and_learn()  # compiles
  whole, bare, sampling = [], [], []
  for _ in range(rounds):
    start = time.perf_counter()
    running.play_and_learn()
    whole.append(time.perf_counter() - start)
    state.experience.rewind()
    start = time.perf_counter()
    state.learner.learn(fixed, 0)
    bare.append(time.perf_counter() - start)
    start = time.perf_counter()
    state.experience.prepare(beta)
    sampling.append(time.perf_counter() - start)
  running.close()
  updates = config.round_updates
  steps = config.round_steps
  print(f"{config.environment.num_envs} x {config.environment.name}")
  print(f"bare update            {median(bare) / updates * 1e3:8.1f} ms")
  print(f"updates alone allow    {steps / median(bare):8.0f} steps/s")
  print(f"training               {steps / median(whole):8.0f} steps/s")
  print(f"ratio                  {median(bare) / median(whole):8.2f}")
  share = median(sampling) / median(bare)
  print(f"sampling / update      {share:8.1%}")


if __name__ == "__main__":
  main()
