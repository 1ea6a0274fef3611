import csv

import misbehaving  # noqa: F401  (registers environments)
import numpy as np
import pytest
import train_fixtures
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import algorithms
from tf_mmdrl.train import (
  factories,
  playing,
  run_directory,
  run_state,
  runs,
  stopping,
  trainer,
)


def directory_of(path):
  return run_directory.RunDirectory(path)


def fingerprints(path, config):
  state = run_state.RunState(config, directory_of(path))
  try:
    assert state.restore(pytest.fail, clean=False)
    return state.fingerprints()
  finally:
    state.close()


def train_in_pieces(config, path, steps):
  """Runs to each of the steps, as if a signal came there."""
  for step in steps:
    directory = directory_of(path)
    begun = directory.as_begun(config)
    directory.open_for_training(begun)
    state = run_state.RunState(begun, directory)
    state.restore(pytest.fail, clean=True)
    state.metrics.begin()
    with stopping.Stop() as stop:
      part = trainer.Trainer(state, directory, stop)
      play_round = part._round

      def stop_at(step=step, play_round=play_round, state=state, stop=stop):
        play_round()
        stop.asked = state.step >= step

      part._round = stop_at
      assert not part.run()
    assert state.step >= step
    state.close()
    directory.close()
  return trainer.train(config, directory_of(path))


_RUNS = {
  "minatar": (["agent.n_step=3", "replay.prioritized=true"], [100, 336]),
  "minatar uniform": ([], [300]),
  "two actors": (
    ["system.actors=2", "agent.n_step=3", "replay.prioritized=true"],
    [100, 336],
  ),
  "two actors uniform": (["system.actors=2"], [300]),
  # All that is random in a network, and in how it explores.
  "rainbow": (
    [
      *algorithms.get("rainbow_mmdqn").assignments(),
      "agent.name=rainbow_mmdqn",
      "agent.exploration=bootstrapped",
    ],
    [100, 336],
  ),
  "iqn": (
    ["agent.name=iqn", "agent.exploration=thompson", "agent.munchausen=true"],
    [300],
  ),
  "fqf": (["agent.name=fqf", "agent.exploration=ucb:2->0.1"], [300]),
  "adversarial": (["agent.name=adversarial_mmdqn"], [300]),
  "atari": (
    [
      "environment.name=Pong",
      "environment.num_envs=2",
      "environment.rebuild_period=200",
      "agent.n_step=3",
      "evaluation.num_envs=1",
      "evaluation.episodes=1",
      "schedule.steps=320",
      "schedule.learning_starts=96",
      "replay.prioritized=true",
    ],
    [150, 250],
  ),
  # All updates of a round as one piece; DQN is compiled fastest.
  "compiled dqn": (
    ["agent.name=dqn", "network.num_particles=1", "system.xla=auto"],
    [300],
  ),
  "compiled": (
    ["agent.n_step=3", "replay.prioritized=true", "system.xla=auto"],
    [300],
  ),
}


# The others differ in their agents; the agents' tests compare checkpoints.
_FAST = ("two actors", "atari", "compiled dqn")


@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=[] if name in _FAST else pytest.mark.slow)
    for name in _RUNS
  ],
)
def test_a_run_in_pieces_is_the_run_in_one(tmp_path, name):
  changes, cuts = _RUNS[name]
  config = train_fixtures.small(*changes)
  whole = trainer.train(config, directory_of(tmp_path / "whole"))
  pieces = train_in_pieces(config, tmp_path / "pieces", cuts)
  assert whole == pieces
  assert whole.finished and whole.step == config.schedule.steps
  assert fingerprints(tmp_path / "whole", config) == fingerprints(
    tmp_path / "pieces", config
  )
  texts = [
    (tmp_path / run / "metrics.csv").read_bytes() for run in ("whole", "pieces")
  ]
  assert texts[0] == texts[1]


def _phases(config, path):
  """The ends of rounds in which phases should end, by the games in replay."""
  with runs.restored(path) as state:
    types = state.replay.shards[0].gather_all().next_step_type.numpy()[0]
  start, ends = 0, []
  for end in np.flatnonzero(types == ts.StepType.LAST) + 1:
    if end - start >= config.evaluation.period:
      start = end
      ends.append(int(end))
  a_round = config.round_steps
  return [-(-end // a_round) * a_round for end in ends]


def test_phases_end_with_games(tmp_path):
  """Each with the game that passes its length; the next counts from there."""
  config = train_fixtures.small(
    "environment.name=CartPole-v1",
    "environment.num_envs=1",
    "schedule.learning_starts=9999",
    "schedule.collect_steps=8",  # shorter than any game
    "schedule.steps=420",  # ten phases, which are longer than that
    "evaluation.period=42",  # where games end within rounds matters
    "evaluation.at=game",
    "evaluation.num_envs=1",
    "evaluation.episodes=1",
    "system.log_period=9999",
  )
  whole, cut = tmp_path / "whole", tmp_path / "cut"
  outcome = trainer.train(config, directory_of(whole))
  wanted = _phases(config, whole)
  assert len(wanted) == 10 and wanted[-1] > 424
  text = (whole / "metrics.csv").read_text()
  rows = list(csv.DictReader(text.splitlines()))
  assert [int(row["step"]) for row in rows] == wanted
  assert outcome.finished and outcome.step == wanted[-1]
  assert trainer.train(config, directory_of(whole)) == outcome  # is over

  directory = directory_of(cut)
  directory.open_for_training(config)
  state = run_state.RunState(config, directory)
  state.metrics.begin()
  with stopping.Stop() as stop:
    part = trainer.Trainer(state, directory, stop)
    part._evaluator.evaluate = lambda *_: setattr(stop, "asked", True)
    assert not part.run()  # stopped within the first evaluation
  assert state.step == wanted[0]
  state.close()
  directory.close()
  assert trainer.train(config, directory_of(cut)) == outcome
  assert (cut / "metrics.csv").read_text() == text
  assert fingerprints(whole, config) == fingerprints(cut, config)


def test_phases_end_without_games_that_never_end(tmp_path, capsys):
  """At twice their length; a run would never be evaluated, nor end."""
  config = train_fixtures.small(
    "environment.name=Misbehaving_endless-v0",  # after 40 steps
    "environment.max_episode_steps=0",
    "environment.num_envs=1",
    "environment.resume=fresh",
    "schedule.learning_starts=9999",
    "schedule.steps=90",
    "evaluation.period=30",
    "evaluation.at=game",
    "evaluation.num_envs=1",
    "evaluation.episodes=1",
    "evaluation.max_episode_steps=20",
    "system.log_period=9999",
  )
  outcome = trainer.train(config, directory_of(tmp_path))
  rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
  assert [int(row["step"]) for row in rows] == [60, 120, 180]
  assert outcome.finished
  warnings = capsys.readouterr().err.split("warning: ")[1:]
  warned = [line for line in warnings if "no game has ended" in line]
  assert len(warned) == 3 and "at step 120;" in warned[1]


def test_another_seed_is_another_run(tmp_path):
  prints = set()
  for seed in (0, 1):
    config = train_fixtures.small(f"system.seed={seed}", "schedule.steps=160")
    trainer.train(config, directory_of(tmp_path / str(seed)))
    prints.add(str(fingerprints(tmp_path / str(seed), config)))
  assert len(prints) == 2


def test_a_run_leaves_everything_behind(tmp_path):
  import tensorflow as tf

  config = train_fixtures.small()
  outcome = trainer.train(config, directory_of(tmp_path))
  names = {path.name for path in tmp_path.iterdir()}
  assert names == {
    "checkpoints",
    "config.json",
    "export",
    "learning_curve.png",
    "lock",
    "metrics.csv",
    "tensorboard",
  }
  with (tmp_path / "metrics.csv").open() as file:
    rows = list(csv.DictReader(file))
  assert [int(row["step"]) for row in rows] == [160, 320, 480, 640]
  evaluated = [row for row in rows if row["evaluation_score"]]
  assert [int(row["step"]) for row in evaluated] == [320, 640]
  assert all(int(row["evaluation_episodes"]) == 4 for row in evaluated)
  # 200 steps before learning, then rounds of 16 steps and 4 updates.
  assert int(rows[-1]["updates"]) == (640 - 208) // 4
  assert outcome.evaluation_score == float(evaluated[-1]["evaluation_score"])
  mine = playing.open_run(directory_of(tmp_path), 640)
  policy = tf.saved_model.load(str(tmp_path / "export" / "640"))
  serve = policy.signatures["serving_default"]
  answer = serve(observation=tf.zeros([3, 10, 10, 4], tf.uint8))
  assert answer["action"].shape == [3]
  np.testing.assert_array_equal(
    np.argmax(answer["q_values"], -1), answer["action"]
  )
  expected = mine.expected(np.zeros([3, 10, 10, 4], np.uint8))
  np.testing.assert_allclose(expected, answer["q_values"], rtol=1e-5)


def test_a_finished_run_stays_as_it_is(tmp_path, capfd):
  # A run ends with a round, here of 16 steps; that is no shorter run later.
  config = train_fixtures.small("schedule.steps=150")
  first = trainer.train(config, directory_of(tmp_path))
  before = fingerprints(tmp_path, config)
  assert "finished" not in capfd.readouterr().err
  assert trainer.train(config, directory_of(tmp_path)) == first
  assert (
    "the run is finished: it is at step 160 of 150" in capfd.readouterr().err
  )
  assert fingerprints(tmp_path, config) == before


def test_a_longer_run_goes_on_with_a_finished_one(tmp_path, capfd):
  for steps in (160, 320):
    config = train_fixtures.small(f"schedule.steps={steps}")
    assert trainer.train(config, directory_of(tmp_path)).step == steps
  said = capfd.readouterr().err
  assert "was to have 160 steps and will have 320" in said
  assert "goes on at step 160 of 320" in said
  # Schedules do not jump back: they are over, as they were.
  kept = directory_of(tmp_path).config()
  assert (kept.schedule.horizon, kept.schedule.steps) == (160, 320)
  assert (
    kept.num_updates == train_fixtures.small("schedule.steps=160").num_updates
  )
  assert factories.beta(kept, 160) == factories.beta(kept, 320) == 1
