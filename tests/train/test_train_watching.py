import re
import time

import pytest
import train_fixtures
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util import tensor_util

from tf_mmdrl.train import (
  metrics,
  run_directory,
  tensorboard_pages,
  trainer,
  watching,
)


@pytest.fixture(scope="module")
def events(tmp_path_factory):
  path = tmp_path_factory.mktemp("watched")
  trainer.train(train_fixtures.small(), run_directory.RunDirectory(path))
  size = {event_accumulator.TENSORS: 0}  # all
  read = event_accumulator.EventAccumulator(str(path / "tensorboard"), size)
  return read.Reload()


@pytest.mark.parametrize(
  "name, steps",
  [
    ("Score/train", [160, 320, 480, 640]),
    ("Score/evaluation", [320, 640]),
    ("Learning/loss", [320, 480, 640]),
    ("Collection/epsilon", [160, 320, 480, 640]),
    ("Collection/replay_steps", [160, 320, 480, 640]),
    ("Collection/steps_per_second", [160, 320, 480, 640]),
    ("Returns/of_each_action", [320, 640]),
  ],
)
def test_tensorboard_has_it_at_these_steps(events, name, steps):
  assert [event.step for event in events.Tensors(name)] == steps


def test_tensorboard_shows_three_frames_beside_their_returns(events):
  image = events.Tensors("Returns/of_each_action")[-1].tensor_proto
  width, height = map(int, image.string_val[:2])
  assert height > width  # three rows of a frame and its histograms


def test_tensorboard_has_the_measure_of_human_play(tmp_path):
  config = train_fixtures.small("environment.name=Pong")
  watcher = watching.Watcher(
    run_directory.RunDirectory(tmp_path), config, step=0
  )
  row = dict.fromkeys(metrics.COLUMNS) | {"step": 5}
  watcher.report(row | {"evaluation_human_normalized": 0.25})
  watcher.close()
  read = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
  (event,) = read.Reload().Tensors("Score/evaluation_human_normalized")
  assert (
    event.step == 5 and tensor_util.make_ndarray(event.tensor_proto) == 0.25
  )


def test_steps_a_second_are_those_since_the_run_went_on(tmp_path, monkeypatch):
  now = [100.0]
  monkeypatch.setattr(time, "monotonic", lambda: now[0])
  watcher = watching.Watcher(
    run_directory.RunDirectory(tmp_path), train_fixtures.small(), step=320
  )
  now[0] += 10
  watcher.report(dict.fromkeys(metrics.COLUMNS) | {"step": 340})
  watcher.close()
  read = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
  (event,) = read.Reload().Tensors("Collection/steps_per_second")
  assert tensor_util.make_ndarray(event.tensor_proto) == 2


def test_tensorboard_has_no_human_score_of_a_game_without_one(events):
  assert "Score/evaluation_human_normalized" not in events.Tags()["tensors"]


def test_the_charts_of_mmdrl_tensorboard_show_what_is_logged(events):
  tags = events.Tags()["tensors"]
  layout = tensorboard_pages.layout([train_fixtures.small().environment.name])
  charts = [c for part in layout.category for c in part.chart]
  for chart in charts:
    (expression,) = chart.multiline.tag
    assert any(re.match(expression, tag) for tag in tags), chart


@pytest.mark.parametrize(
  "name",
  [
    "Learning/expected_return",
    "Learning/expected_target",
    "Learning/gradient_norm",
    "Learning/td_error",
    "Returns/predicted",
    "Returns/target",
  ],
)
def test_tensorboard_has_what_updates_saw_after_each_row(events, name):
  # When the first round that learns after a row began.
  assert [event.step for event in events.Tensors(name)] == [208, 320, 480]


def test_tensorboard_has_one_axis_and_one_loss(events):
  tags = [tag for tag in events.Tags()["tensors"] if tag[0] != "_"]
  parts = {"Score", "Learning", "Collection", "Returns"}
  assert {tag.split("/")[0] for tag in tags} == parts
  assert [tag for tag in tags if "loss" in tag.lower()] == ["Learning/loss"]
  for tag in tags:
    steps = [event.step for event in events.Tensors(tag)]
    assert steps == sorted(set(steps)), tag  # one point for each
    assert all(step % 16 == 0 and 160 <= step <= 640 for step in steps), tag
