"""Training by the authors' protocol: whole games, exact resume and stacks."""

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.replay import FrameReplayBuffer
from tf_mmdrl.train import factories, presets
from tf_mmdrl.train.environment_states import EnvironmentState
from tf_mmdrl.train.exact_environment import ExactEnvironment


def _environment(seed=0, rebuild_period=10):
  config = train_fixtures.small(
    "environment.name=Breakout",
    "environment.num_envs=1",
    "environment.protocol=authors",
    "environment.max_episode_steps=70",
    f"system.seed={seed}",
  )
  return ExactEnvironment(factories.environment(config), rebuild_period)


@pytest.mark.parametrize("name", ["paper", "published"])
def test_the_presets_follow_it(name):
  config = presets.get(name)
  assert config.environment.protocol == "authors"
  assert (config.environment.num_envs, config.evaluation.num_envs) == (1, 1)
  assert config.environment.max_episode_steps == 0  # 27,000, the protocol's
  assert config.evaluation.period == 250_000
  assert config.evaluation.at == "game"
  assert config.evaluation.steps == 125_000


def _action(index):
  """FIRE, then NOOP, so that lives are lost."""
  return np.array([1 if index % 20 == 0 else 0])


def test_no_game_is_cut_and_nothing_is_played_again():
  """A fresh start would be due after 10 steps if the state were not saved."""
  environment = _environment()
  types = []
  for index in range(100):
    assert not environment.is_due
    types.append(int(environment.step(_action(index)).step_type[0]))
  wanted = [1] * 69 + [ts.StepType.LAST, ts.StepType.FIRST] + [1] * 29
  np.testing.assert_array_equal(types, wanted)
  state = environment.state()
  assert state.actions.size == 0
  resumed = _environment(seed=1)
  resumed.set_state(EnvironmentState(dict(state.plain), state.actions))
  for index in range(45):  # beyond the end of the game
    for left, right in zip(
      environment.step(_action(index)), resumed.step(_action(index))
    ):
      np.testing.assert_array_equal(left, right)
  environment.close()
  resumed.close()


def test_replay_keeps_the_stacks_that_lost_lives_cleared():
  environment = _environment()
  spec = trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32),
    observation=tf.TensorSpec([84, 84, 4], tf.uint8),
    action=tf.TensorSpec([], tf.int64),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32),
    reward=tf.TensorSpec([], tf.float32),
    discount=tf.TensorSpec([], tf.float32),
  )
  buffer = FrameReplayBuffer(spec, 1, 200, stack=4)
  seen = []
  for index in range(100):
    before, action = environment.time_step, _action(index)
    step = trajectory.from_transition(
      before, policy_step.PolicyStep(action), environment.step(action)
    )
    buffer.add_batch(step)
    seen.append(step)
  environment.close()
  kept = buffer.gather_all()
  for name in ("observation", "discount"):
    expected = np.stack([getattr(step, name)[0] for step in seen])
    np.testing.assert_array_equal(getattr(kept, name)[0], expected)
  lost = [
    index
    for index, step in enumerate(seen)
    if step.discount == 0 and step.next_step_type == ts.StepType.MID
  ]
  assert lost
  for index in lost:
    after = seen[index + 1].observation[0]
    assert after[..., -1].any() and not after[..., :-1].any()
  # The cut after 70 steps is an end for learning, like a lost life.
  assert seen[69].next_step_type == ts.StepType.LAST
  assert seen[69].discount == 0
