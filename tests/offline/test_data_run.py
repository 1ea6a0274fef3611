"""Learning from logged episodes alone: support, cuts, exports, refusals."""

import itertools

import numpy as np
import offline_fixtures
import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.offline import (
  behaviour,
  blocks,
  data_run,
  dataset,
  fitting,
  overview,
)
from tf_mmdrl.offline.dataset import Description, Episode
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import playing, presets, run_directory, trainer

_SMALL = [
  *("system.xla=off", "network.num_particles=8", "schedule.batch_size=16"),
  *("schedule.steps=400", "schedule.target_period=20"),
  *("system.checkpoint_period=100", "system.log_period=100", "agent.gamma=0.5"),
  "optimizer.learning_rate=3e-3",
]


def _episodes(count=40, actions=3):
  """A state decides: action 1 pays 1; of those logged action 0 pays 0.

  Action 2 is in the log once, by accident, and paid 5 there.
  """
  rng = np.random.default_rng(0)
  made = []
  for number in range(count):
    taken = rng.integers(2, size=10)
    rewards = taken.astype(np.float32)
    if actions > 2 and number == 0:
      taken[3], rewards[3] = 2, 5
    seen = rng.normal(size=[11, 4]).astype(np.float32)
    made.append(Episode(seen[:-1], taken, rewards, seen[1:], True, None))
  return made


def _data(path, **options):
  description = Description((4,), np.dtype(np.float32), 3)
  return offline_fixtures.write(path, _episodes(**options), description)


def _config(data, *changes):
  return configs.change(
    presets.get("data"), [*_SMALL, f"replay.data={data}", *changes]
  )


def _train(path, config, cut_after=None):
  data = overview.open_data(
    offline_fixtures.opened(config.replay.data), config.agent.gamma
  )
  made = []

  def make(completed, directory):
    specs = fitting.specs_of(data.episodes.description)
    made.append(data_run.DataRun(completed, directory, specs=specs, data=data))
    if cut_after is not None:
      _cut(made[0], cut_after)
    return made[0]

  trainer.train(config, run_directory.RunDirectory(path), make=make)
  return made[0]


class _CutError(Exception):
  pass


def _cut(state, saves):
  """Ends a run after so many checkpoints, as a crash would."""
  save, counter = state.save, itertools.count(1)

  def cutting():
    save()
    if next(counter) == saves:
      raise _CutError

  state.save = cutting


def test_a_run_from_data_goes_on_bit_for_bit_and_its_policy_plays(tmp_path):
  """With support: the rare action 2 is never chosen, 1 is."""
  config = _config(_data(tmp_path / "data"), "replay.support=0.3")
  whole = _train(tmp_path / "whole", config)
  with pytest.raises(_CutError):
    _train(tmp_path / "cut", config, cut_after=2)
  again = _train(tmp_path / "cut", config)
  assert again.step == whole.step == 400
  assert again.fingerprints() == whole.fingerprints()
  policy = playing.open_run(run_directory.RunDirectory(tmp_path / "cut"))
  seen = np.random.default_rng(1).normal(size=[200, 4]).astype(np.float32)
  values = policy.expected(seen).numpy()
  assert (values.argmax(axis=1) == 1).mean() > 0.95
  assert values.shape == (200, 3) and policy.number == 400


def test_a_data_set_that_changed_is_not_gone_on_with(tmp_path):
  path = _data(tmp_path / "data")
  config = _config(path, "schedule.steps=100")
  _train(tmp_path / "run", config)
  _data(tmp_path / "other", count=30)
  path.rename(tmp_path / "old")
  (tmp_path / "other").rename(path)
  with pytest.raises(errors.UserError, match="not the one that this run began"):
    _train(tmp_path / "run", config)


def test_support_is_a_share_of_the_most_frequent_action(tmp_path):
  data = offline_fixtures.opened(_data(tmp_path / "data"))
  model = behaviour.Behaviour(
    _config(tmp_path / "data"), fitting.specs_of(data.description)
  )
  source = blocks.Source(
    data,
    lambda seen: np.ones([len(seen), 3], np.float32),
    blocks.Scale(),
    budget=2**30,
    seed=0,
  )
  model.learn(source)
  seen = np.random.default_rng(1).normal(size=[100, 4]).astype(np.float32)
  mask = model.supported(0.3)(seen)
  assert mask[:, :2].mean() > 0.95 and mask[:, 2].mean() < 0.05
  assert model.supported(0.0)(seen).all()
  model.save(tmp_path, "these")
  other = behaviour.Behaviour(
    _config(tmp_path / "data", "system.seed=7"),
    fitting.specs_of(data.description),
  )
  assert not other.restore(tmp_path, "others")
  assert other.restore(tmp_path, "these")
  np.testing.assert_array_equal(other.supported(0.3)(seen), mask)
  (tmp_path / "behaviour").write_bytes(b"half")
  assert not other.restore(tmp_path, "these")


def test_pessimistic_examples_are_of_unsupported_actions():
  rng = np.random.default_rng(0)
  mask = np.array([[1, 1, 0], [1, 1, 1]], np.float32)
  block = blocks.Block(
    rng.normal(size=[8, 4]),
    np.zeros(8, np.int32),
    np.ones(8, np.float32),
    np.ones(8, np.float32),
    rng.normal(size=[8, 4]),
    np.repeat(mask, 4, axis=0),
    np.ones(8, np.float32),
  )
  batches = block.take(np.array([[0, 4, 1, 5, 2, 6, 3, 7]] * 2))
  made = behaviour.pessimistic(batches, np.float64(-3.0), [1])
  assert made.actions.shape == (2, 10)
  for part, before in zip(made, batches):
    np.testing.assert_array_equal(part[:, :8], before)
  # Row 0 lacks action 2; row 4 supports everything, and does not count.
  assert made.weights[:, 8:].tolist() == [[1, 0]] * 2
  assert made.actions[0, 8] == 2 and made.rewards[0, 8] == -3
  assert not made.discounts[:, 8:].any()
  np.testing.assert_array_equal(
    made.observations[:, 8], batches.next_observations[:, 0]
  )


def _command(path, *arguments):
  return main.main(
    [
      *("train", "--data", str(path / "data"), "--run-dir", str(path / "run")),
      *(part for setting in _SMALL for part in ("--set", setting)),
      *arguments,
    ]
  )


@pytest.mark.parametrize(
  "arguments, message",
  [
    (["--num-envs", "2"], "--num-envs is about playing"),
    (["--dry-run"], "--dry-run measures how fast a game is played"),
    (["--set", "agent.n_step=3"], "logged transitions are single steps"),
    (["--env", "Acrobot-v1"], "pass the environment of the data"),
    (["--support", "2"], "support must be at most 1"),
  ],
)
def test_bad_flags_are_refused_in_one_line(
  arguments, message, tmp_path, capsys
):
  _data(tmp_path / "data")
  assert _command(tmp_path, *arguments) == main.EXIT_BAD_INPUT
  said = capsys.readouterr()
  shown = said.err.strip().splitlines()[-1]
  assert shown.startswith("mmdrl: ") and message in shown
  assert not said.out  # no run was announced
  assert not (tmp_path / "run" / "checkpoints").exists()


def test_the_command_learns_and_says_what_it_made(tmp_path, capsys):
  _data(tmp_path / "data")
  assert not _command(tmp_path)
  shown = capsys.readouterr().out
  assert "learnt for 400 steps; pass --env to evaluate" in shown
  assert (tmp_path / "run" / "export" / "400").is_dir()
  (tmp_path / "data").rename(tmp_path / "moved")  # nothing more needs it
  assert main.main(["export", str(tmp_path / "run")]) == 0


def test_data_in_parts_gives_the_same_examples(tmp_path):
  """A memory of a few episodes: each is seen, and a cut changes nothing."""
  data = offline_fixtures.opened(_data(tmp_path / "data"))
  assert dataset.summarize(data).action_counts[2] == 1
  source = blocks.Source(
    data,
    lambda seen: np.ones([len(seen), 3], np.float32),
    blocks.Scale(),
    budget=40 * data.description.step_bytes * 4,
    seed=0,
    held_out=0.0,
  )
  assert source.num_blocks == 10
  size = dict(count=4, size=8, seed=0, step_bytes=64)
  (one,) = blocks.batches(source, 7, **size)
  list(blocks.batches(source, 23, **size))
  (again,) = blocks.batches(source, 7, **size)
  for part, same in zip(one, again):
    np.testing.assert_array_equal(part, same)
  # Of transitions of 4 MB two batches of 8 fit into 64 MB.
  size["step_bytes"] = 2**22
  halves = list(blocks.batches(source, 7, **size))
  assert [half.actions.shape for half in halves] == [(2, 8), (2, 8)]
  for part, *both in zip(one, *halves):
    np.testing.assert_array_equal(part, np.concatenate(both))
