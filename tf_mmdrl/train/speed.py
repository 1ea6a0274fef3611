"""A short test of how fast this machine trains, and what runs take by it."""

import pathlib
import tempfile
import time
from typing import Callable, List, NamedTuple

import numpy as np

from tf_mmdrl.environments import Environment
from tf_mmdrl.train import factories, run_directory
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.run_state import RunState

_PLAYED = 40  # steps of each environment before the first update


class NetworkSpeed(NamedTuple):
  """Seconds that a network takes.

  Attributes:
    update: one update.
    choice: one step of all environments, which includes the choice of actions.
  """

  update: float
  choice: float


def network(config: Config, seconds: float) -> NetworkSpeed:
  """Times the updates and the play of a run that is thrown away.

  Args:
    config: the run's.
    seconds: how long to measure, besides the time to compile.

  Returns:
    Its speed.
  """
  least = 2 * config.environment.num_envs * _PLAYED
  short = config.replace(
    replay=dict(capacity=least), schedule=dict(learning_starts=least)
  )
  with tempfile.TemporaryDirectory() as folder:
    directory = run_directory.RunDirectory(pathlib.Path(folder))
    state = RunState(short, directory)
    try:
      weights = state.learner.weights()
      state.count(state.play(weights, _PLAYED))
      batches = state.experience.take(factories.beta(short, 0))
      play = _median(lambda: state.count(state.play(weights, 8)), seconds / 2)
      learn = _median(lambda: state.learner.learn(batches, 0), seconds / 2)
    finally:
      state.close()
  return NetworkSpeed(learn / short.round_updates, play / 8)


def environment(env: Environment, seconds: float) -> float:
  """Seconds of one step of all environments, by random actions."""
  generator = np.random.default_rng(0)
  spec = env.action_spec()

  def step():
    env.step(
      generator.integers(
        spec.minimum, spec.maximum + 1, size=env.batch_size
      ).astype(spec.dtype)
    )

  env.reset()
  return _median(step, seconds)


def run_seconds(
  config: Config, speed: NetworkSpeed, *, measured: Config, env_step: float
) -> float:
  """How long a run takes at least, without its evaluations.

  Actors play while the learner learns, so the slower of the two decides.

  Args:
    config: the run's.
    speed: the speed of a network of the same kind.
    measured: the configuration that `speed` was measured with.
    env_step: seconds of one step of all its environments.

  Returns:
    Seconds.
  """
  schedule = config.schedule
  share = schedule.batch_size / measured.schedule.batch_size
  learning = config.num_updates * speed.update * share
  rounds = schedule.steps / config.environment.num_envs
  return max(learning, rounds * max(env_step, speed.choice))


def _median(function: Callable[[], object], seconds: float) -> float:
  """The median time of a call; the first, which compiles, does not count."""
  function()
  times: List[float] = []
  stop = time.perf_counter() + seconds
  while len(times) < 3 or time.perf_counter() < stop:
    start = time.perf_counter()
    function()
    times.append(time.perf_counter() - start)
  return sorted(times)[len(times) // 2]
