"""Runs that were never trained, as directories."""

import csv
import json

import numpy as np

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import metrics

GAMES = ("Breakout", "Pong", "Seaquest", "VideoPinball", "Asterix")


def write_run(path, *changes, scores, period=1_000, episodes=16):
  """A run's config.json and metrics.csv, without its weights."""
  path.mkdir(parents=True)
  config = configs.change(configs.Config(), changes)
  content = {"config": configs.to_json(config)}
  (path / "config.json").write_text(json.dumps(content))
  with (path / "metrics.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, metrics.COLUMNS)
    writer.writeheader()
    for index, score in enumerate(scores, 1):
      row = {"step": index * period, "evaluation_score": score}
      writer.writerow({**row, "evaluation_episodes": episodes})
      writer.writerow({"step": index * period + 1})  # a row of the log
  return path


def write_runs(
  path, games=GAMES, agents=("mmdqn", "qrdqn"), seeds=(0, 1), points=20
):
  """A run for each game, agent and seed, with curves that rise."""
  generator = np.random.default_rng(0)
  for number, game in enumerate(games):
    for better, agent in enumerate(reversed(agents)):
      for seed in seeds:
        ends = (1 + better) * 10 ** (1 + number % 4)
        curve = ends * (1 - np.exp(-np.linspace(0.2, 3, points)))
        curve = curve * generator.normal(1, 0.1, points)
        write_run(
          path / f"{game.replace('/', '-')}-{agent}-{seed}",
          f"environment.name={game}",
          f"agent.name={agent}",
          f"system.seed={seed}",
          scores=curve,
        )
  return path
