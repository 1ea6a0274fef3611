"""Which checkpoint of a MinAtar run is best, told from logged data.

Trains a run of MinAtar Breakout, exports six of its policies on the way, logs
50,000 steps that these take in turns with a share of random actions, evaluates
each policy from the logs with `mmdrl ope`, and compares the order by the
estimated mean discounted return with that of played games.

    python benchmarks/ope_ranking.py train -o DIR
    python benchmarks/ope_ranking.py record -o DIR
    python benchmarks/ope_ranking.py evaluate -o DIR [--steps 6000 12000]
    python benchmarks/ope_ranking.py table -o DIR

`evaluate` can run in several processes, each with some of the `--steps`, and
goes on where it was cut.
"""

import argparse
import json
import pathlib

import numpy as np

STEPS = (6_000, 12_000, 18_000, 26_000, 36_000, 50_000)
GAME = "MinAtar/Breakout"
LOGGED, EPSILON = 50_000, 0.2


def train(directory: pathlib.Path) -> None:
  """Trains, and exports a policy after so many steps each."""
  from tf_mmdrl.train import config as configs
  from tf_mmdrl.train import (
    exporting,
    presets,
    rounds,
    run_directory,
    run_state,
  )

  config = configs.change(
    presets.get("minatar"),
    [
      f"environment.name={GAME}",
      f"schedule.steps={STEPS[-1]}",
      "schedule.learning_starts=2000",
      "schedule.epsilon_steps=20000",
      "system.seed=5",
    ],
  )
  state = run_state.RunState(
    config, run_directory.RunDirectory(directory / "run")
  )
  turn = rounds.Rounds(state)
  try:
    for steps in STEPS:
      while state.step < steps:
        turn.play_and_learn()
      print(exporting.export(state, directory / "policies"), flush=True)
  finally:
    turn.close()
    state.close()


def _policies(directory: pathlib.Path, steps) -> list:
  there = map(int, (p.name for p in (directory / "policies").glob("[0-9]*")))
  names = sorted(there)
  chosen = [names[STEPS.index(number)] for number in steps]
  return [f"{directory / 'policies'}@{number}" for number in chosen]


def record(directory: pathlib.Path) -> None:
  """Logs what the policies do, in turns."""
  from tf_mmdrl.cli import main

  main.main(
    [
      *("record", *_policies(directory, STEPS)),
      *("-o", str(directory / "data"), "--steps", str(LOGGED)),
      *("--epsilon", str(EPSILON), "--seed", "1"),
    ]
  )


def evaluate(directory: pathlib.Path, steps, updates: int) -> None:
  """Evaluates policies from the logs, and plays them for the truth."""
  from tf_mmdrl.cli import main

  for number, policy in zip(steps, _policies(directory, steps)):
    place = directory / f"ope_{number}"
    if (place / "ope.json").exists():
      continue
    main.main(
      [
        *("ope", "--policy", policy, "--data", str(directory / "data")),
        *("-o", str(place), "--updates", str(updates), "--truth", GAME),
        *("--truth-episodes", "100", "--estimators", "fitted"),
        *("--set", "network.num_particles=16"),
      ]
    )


def table(directory: pathlib.Path) -> str:
  """The estimates beside the truth, and how the orders agree."""
  lines = [
    "| policy after | fitted mean | played mean | W1 | energy distance |",
    "|---:|---:|---:|---:|---:|",
  ]
  estimated, true = [], []
  for number in STEPS:
    content = json.loads((directory / f"ope_{number}/ope.json").read_text())
    (found,) = content["policies"]
    played = np.array(found["truth"]["returns"])
    distances = found["truth"]["distances"]["fitted"]
    estimated.append(found["statistics"]["fitted"]["mean"][0])
    true.append(played.mean())
    error = played.std(ddof=1) / np.sqrt(len(played))
    lines.append(
      f"| {number:,} steps | {estimated[-1]:.2f} | {true[-1]:.2f} ±"
      f" {error:.2f} | {distances['w1']:.2f} | {distances['energy']:.2f} |"
    )
  lines.append("")
  lines.append(f"Spearman's correlation: {spearman(estimated, true):.2f}")
  return "\n".join(lines)


def spearman(one, other) -> float:
  """The correlation of ranks."""
  ranks = [np.argsort(np.argsort(each)) for each in (one, other)]
  return float(np.corrcoef(*ranks)[0, 1])


def main() -> None:
  """Parses the flags."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("what", choices=("train", "record", "evaluate", "table"))
  parser.add_argument("-o", "--output", required=True)
  parser.add_argument("--steps", type=int, nargs="+", default=STEPS)
  parser.add_argument("--updates", type=int, default=4000)
  args = parser.parse_args()
  directory = pathlib.Path(args.output)
  directory.mkdir(parents=True, exist_ok=True)
  if args.what == "train":
    train(directory)
  elif args.what == "record":
    record(directory)
  elif args.what == "evaluate":
    evaluate(directory, args.steps, args.updates)
  else:
    print(table(directory))


if __name__ == "__main__":
  main()
