"""The returns of single episodes, for scripts in TF-Agents' manner."""

from typing import Callable

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments


def episode_returns(
  env: environments.Environment,
  act: Callable[[ts.TimeStep], policy_step.PolicyStep],
) -> np.ndarray:
  """[B] returns, undiscounted and unclipped, of one episode in each of B games.

  Args:
    env: a batched environment; it is reset first.
    act: time steps [B, ...] as tensors -> actions [B]: a policy's `action`,
      best as a `tf.function`.

  Returns:
    The sum of each game's rewards up to its first end.
  """
  time_step = env.reset()
  running = np.ones([len(time_step.step_type)], bool)
  returns = np.zeros(running.shape)
  while running.any():
    step = act(tf.nest.map_structure(tf.constant, time_step))
    time_step = env.step(step.action.numpy())
    returns += np.where(running, env.raw_reward, 0)
    running &= ~time_step.is_last()
  return returns
