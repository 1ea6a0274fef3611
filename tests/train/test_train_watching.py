import pytest
import train_fixtures
from tensorboard.backend.event_processing import event_accumulator

from tf_mmdrl.train import run_directory, trainer


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


def test_tensorboard_has_the_agents_own_summaries(events):
  tags = events.Tags()["tensors"]
  for part in ("gradient_norm", "expected_return", "particles"):
    assert any(part in tag for tag in tags), (part, tags)
