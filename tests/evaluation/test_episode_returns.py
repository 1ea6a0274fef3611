"""Returns of single episodes are those of games played one after another."""

import gymnasium
import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step

from tf_mmdrl import environments, evaluation


def _length(seed):
  """Steps until CartPole falls, if it is always pushed to the right."""
  env = gymnasium.make("CartPole-v1")
  env.reset(seed=seed)
  length, over = 0, False
  while not over:
    *_, terminated, truncated, _ = env.step(1)
    length, over = length + 1, terminated or truncated
  return length


def test_each_game_counts_up_to_its_first_end():
  env = environments.make_environment(
    "CartPole-v1", num_envs=4, seed=7, vectorization_mode="sync"
  )

  @tf.function
  def act(time_step):
    return policy_step.PolicyStep(tf.ones_like(time_step.step_type))

  found = evaluation.episode_returns(env, act)
  env.close()
  # Gymnasium seeds the i-th of a vector with seed + i.
  expected = [_length(7 + index) for index in range(4)]
  assert len(set(expected)) > 1
  np.testing.assert_array_equal(found, expected)
