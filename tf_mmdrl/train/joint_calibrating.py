"""Joint particles of first states beside the returns that games bring.

`mmdrl calibrate` comes here where returns are vectors. Each action is taken at
the start of as many games, which the policy then plays to their ends, so that
every action's particles have Monte Carlo returns to be compared with.
"""

import functools
from typing import Callable, List

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.environments import Environment
from tf_mmdrl.report.joint_calibration import JointForecast
from tf_mmdrl.train import calibrating, factories, playing
from tf_mmdrl.train.config import Config


def forecasts(
  policy: playing.ExportedPolicy,
  config: Config,
  progress: Callable[[float], None] = lambda share: None,
) -> List[JointForecast]:
  """Plays games that begin with each action in turn.

  Args:
    policy: who predicts, and plays on after the first action.
    config: what to play: `evaluation.episodes` games for each action in
      `evaluation.num_envs` environments.
    progress: told the share that is done.

  Returns:
    For each action what was predicted, and the returns that are known.
  """
  environment = calibrating.environment(config)
  try:
    if factories.dimensions(environment) is None:
      raise errors.UserError(
        "joint returns are wanted, got returns that are numbers from"
        f" {config.environment.name!r}"
      )
    first = tf.Variable(0, dtype=tf.int64, trainable=False)
    player = playing.evaluator(policy, config, environment, first_action=first)
    found = []
    for action in range(policy.num_actions):
      first.assign(action)
      turns = player.turns(calibrating.BOUNDARY + policy.number)
      share = functools.partial(_part, progress, action, policy.num_actions)
      found.append(_play(policy, config, environment, turns, action, share))
  finally:
    environment.close()
  if not any(len(one.returns) for one in found):
    raise errors.UserError(calibrating.NO_RETURN)
  return found


def _part(progress, action: int, num_actions: int, share: float) -> None:
  progress((action + share) / num_actions)


def _play(
  policy: playing.ExportedPolicy,
  config: Config,
  environment: Environment,
  turns,
  action: int,
  progress: Callable[[float], None],
) -> JointForecast:
  """The first states of as many games in each environment, and their returns.

  A return counts if its game ended, or so far on that what is left of it counts
  less than 1 %.
  """
  count = environment.batch_size
  wanted = -(-config.evaluation.episodes // count)
  shape = [count, *environment.reward_spec().shape]
  total, left = np.zeros(shape), np.ones([count])
  length, ended = np.zeros([count], np.int64), np.zeros([count], np.int64)
  particles, weights, returns = [], [], []
  for turn in turns:
    step = turn.time_step
    is_first = step.is_first()
    reward = config.agent.reward_scale * np.asarray(step.reward, np.float64)
    total += np.where(is_first, 0.0, left)[:, np.newaxis] * reward
    left *= np.where(
      is_first, 1.0, config.agent.gamma * np.asarray(step.discount, np.float64)
    )
    length += ~is_first
    too_long = ~step.is_last() & (length >= config.evaluation.max_episode_steps)
    over = (step.is_last() | too_long) & (ended < wanted)
    returns += list(total[over & (left < calibrating.NEGLIGIBLE)])
    ended += over
    progress(float(np.mean(ended / wanted)))
    begins = is_first & (ended < wanted)
    if begins.any():
      seen = policy.returns(tf.convert_to_tensor(step.observation))
      particles.append(seen.values.numpy()[begins, action])
      weights.append(seen.weights().numpy()[begins, action])
    if (ended >= wanted).all():
      break
    again = step.is_last()
    total[again], left[again], length[again] = 0.0, 1.0, 0
    # What was too long goes on, but does not count any more.
    ended[too_long] = wanted
  dimensions = shape[-1]
  share = np.concatenate(weights).ravel().astype(np.float64)
  return JointForecast(
    np.concatenate(particles).reshape([-1, dimensions]),
    share / share.sum(),
    np.array(returns).reshape([-1, dimensions]),
  )
