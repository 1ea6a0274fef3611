"""Predicted distributions beside the returns that came, from played games.

`mmdrl calibrate` comes here. Games are those of training, with its rewards
and its ends (Atari's rewards are clipped and a lost life is an end), because
these are the returns that an agent learns to predict.
"""

from typing import Callable, List, NamedTuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import errors
from tf_mmdrl.environments import Environment
from tf_mmdrl.evaluation.calibration import Forecasts
from tf_mmdrl.train import factories, playing
from tf_mmdrl.train.config import Config

# Number of a rebuilding of the environments that no training comes to.
BOUNDARY = 10**9
# A return that is cut off is known if what is left of it counts less than this.
NEGLIGIBLE = 0.01
NO_RETURN = (
  "no return is known: no game ended, and what was played is too short for the"
  " rest to count less than 1 %; pass more --episodes or a larger --set"
  " environment.max_episode_steps"
)


class _Step(NamedTuple):
  """Of all environments: what was predicted, and what came of it.

  Attributes:
    particles: [B, N] of the actions taken, or None where it was not looked.
    weights: [B, N], or None.
    reward: [B] that came next.
    discount: [B] of the return after it.
    counts: [B] whether a game was under way.
    games: [B] numbers of the games.
  """

  particles: np.ndarray
  weights: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  counts: np.ndarray
  games: np.ndarray


def forecasts(
  policy: playing.ExportedPolicy,
  config: Config,
  every: int = 1,
  progress: Callable[[float], None] = lambda share: None,
) -> Forecasts:
  """Plays games to their ends, as many in each environment.

  Args:
    policy: who predicts and plays.
    config: what to play: `evaluation.episodes` games in
      `evaluation.num_envs` environments.
    every: looks at every so many steps of each game.
    progress: told the share that is done.

  Returns:
    What was predicted at states whose return came to its end.
  """
  made = environment(config)
  try:
    if factories.dimensions(made) is not None:
      raise errors.UserError(
        "returns that are numbers are wanted, got vectors of them from"
        f" {config.environment.name!r}"
      )
    steps = _play(policy, config, made, every, progress)
  finally:
    made.close()
  return _gather(steps, every)


def environment(config: Config) -> Environment:
  """Training's games, as many as are evaluated at a time.

  Args:
    config: of the run; it is an error if what is learnt by it is not the
      distribution of a return.

  Returns:
    The environments.
  """
  if config.agent.munchausen:
    raise errors.UserError(
      "agents with agent.munchausen=true learn rewards with log-probabilities"
      " added, which no game pays; calibrate wants a run without it"
    )
  count = config.evaluation.num_envs
  return factories.environment(
    config.replace(environment=dict(num_envs=count), system=dict(actors=1))
  )


def _play(
  policy: playing.ExportedPolicy,
  config: Config,
  environment: Environment,
  every: int,
  progress: Callable[[float], None],
) -> List[_Step]:
  """The steps of all games that count."""
  player = playing.evaluator(policy, config, environment)
  wanted = -(-config.evaluation.episodes // environment.batch_size)
  longest = config.evaluation.max_episode_steps
  ended = np.zeros([environment.batch_size], np.int64)
  length = np.zeros_like(ended)
  steps: List[_Step] = []
  before = None
  for number, turn in enumerate(player.turns(BOUNDARY + policy.number)):
    if before is not None:
      steps.append(_paid(before, config, turn.time_step))
    last = turn.time_step.is_last()
    length = np.where(turn.time_step.is_first(), 0, length + 1)
    cut = ~last & (length >= longest)
    ended += last
    # What is too long counts as far as it came, and no more is played.
    ended[cut] = wanted
    progress(float(np.mean(np.minimum(1, ended / wanted))))
    playing_on = ~last & (ended < wanted)
    if not playing_on.any() and (ended >= wanted).all():
      break
    seen = None
    if number % every == 0:
      returns = policy.returns(tf.convert_to_tensor(turn.time_step.observation))
      chosen = returns.at(tf.constant(turn.actions))
      seen = chosen.values.numpy(), chosen.weights().numpy()
    games = np.arange(len(ended)) * wanted + ended
    before = seen, playing_on, games
  return steps


def _paid(before, config: Config, time_step) -> _Step:
  """A step, now that its reward is known."""
  seen, counts, games = before
  particles, weights = seen if seen is not None else (None, None)
  reward = config.agent.reward_scale * np.asarray(time_step.reward, np.float64)
  discount = config.agent.gamma * np.asarray(time_step.discount, np.float64)
  return _Step(particles, weights, reward, discount, counts, games)


def _gather(steps: List[_Step], every: int) -> Forecasts:
  """Returns from the last step back to the first, where they are known."""
  count = len(steps[0].counts)
  following, unknown = np.zeros([count]), np.ones([count])
  rows: List[tuple] = []
  for step in reversed(steps):
    # Beyond a step in which no game was under way lies another game.
    following = np.where(step.counts, following, 0.0)
    unknown = np.where(step.counts, unknown, 1.0)
    following = step.reward + step.discount * following
    unknown = step.discount * unknown
    if step.particles is None:
      continue
    known = step.counts & (unknown < NEGLIGIBLE)
    rows.append(
      (
        step.particles[known],
        step.weights[known],
        following[known],
        step.games[known],
      )
    )
  parts = [np.concatenate(column) for column in zip(*reversed(rows))]
  if not rows or not len(parts[2]):
    raise errors.UserError(NO_RETURN)
  return Forecasts(*parts)
