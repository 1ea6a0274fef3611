"""One small run and one server, shared by the tests of serving."""

import pytest
import serving_fixtures

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets, run_directory, runs, trainer

_SMALL = (
  "environment.num_envs=4",
  "environment.max_episode_steps=50",
  "network.num_particles=5",
  "network.output_scale=1",  # so that not all states have one best action
  "replay.capacity=2000",
  "agent.n_step=1",
  "schedule.steps=320",
  "schedule.learning_starts=160",
  "schedule.collect_steps=4",
  "schedule.batch_size=8",
  "evaluation.period=160",
  "evaluation.episodes=4",
  "evaluation.num_envs=2",
  "system.checkpoint_period=160",
  "system.log_period=160",
  "system.xla=off",
)


@pytest.fixture(scope="session")
def run(tmp_path_factory):
  """The directory of a finished run of 320 steps."""
  path = tmp_path_factory.mktemp("serving") / "run"
  config = configs.change(presets.get("quickstart"), _SMALL)
  trainer.train(config, run_directory.RunDirectory(path))
  return path


@pytest.fixture(scope="session")
def state(run):
  """The run at its last step."""
  with runs.restored(run) as restored:
    yield restored


@pytest.fixture(scope="module")
def server(run):
  """A server of the run's exports, and its directory."""
  with serving_fixtures.serving(run / "export") as running:
    yield running
