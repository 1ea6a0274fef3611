"""Evaluation on whole games."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl import environments
from tf_mmdrl.evaluation.evaluator import Evaluator
from tf_mmdrl.policies.player import by_scores
from tf_mmdrl.train import config_groups


@pytest.fixture(scope="module")
def evaluator():
  """CartPole, always pushed to the left but for random actions."""
  made = Evaluator(
    environments.make_environment("CartPole-v1", num_envs=2, seed=0),
    by_scores(lambda x: tf.tile([[1.0, 0.0]], [tf.shape(x)[0], 1]), 2),
    config_groups.EvaluationConfig(episodes=4, epsilon=0.5),
    seed=3,
  )
  yield made
  made.close()


def test_scores_are_the_sums_of_rewards(evaluator):
  played = evaluator.evaluate(7)
  assert len(played.scores) == 4
  assert played.scores == played.lengths  # CartPole pays 1 for a step
  assert min(played.lengths) > 5


def test_games_depend_on_the_step_and_the_seed_alone(evaluator):
  first = evaluator.evaluate(7)
  assert evaluator.evaluate(8) != first
  assert evaluator.evaluate(7) == first
  # Both the games and the random actions are others at another step.
  seven, eight = (
    list(itertools.islice(evaluator.turns(step), 20)) for step in (7, 8)
  )
  begins = [turns[0].time_step.observation for turns in (seven, eight)]
  assert not np.array_equal(*begins)
  actions = [[turn.actions for turn in turns] for turns in (seven, eight)]
  assert not np.array_equal(*actions)


def test_progress_grows_by_games_to_the_end(evaluator):
  shares = []
  evaluator.evaluate(7, progress=shares.append)
  assert shares == sorted(shares)
  assert set(shares) <= {0.0, 0.25, 0.5, 0.75, 1.0}  # 4 games
  assert shares[0] == 0 and shares[-1] == 1 and shares.count(1.0) == 1


def test_turns_are_what_evaluate_plays(evaluator):
  """An action is taken when the next turn is asked for."""
  watched = []
  evaluator.evaluate(7, watch=watched.append)
  turns = list(zip(evaluator.turns(7), watched))
  assert len(turns) == len(watched) > 20
  for turn, time_step in turns:
    np.testing.assert_array_equal(
      turn.time_step.observation, time_step.observation
    )
  assert not turns[0][0].reward.any()
  rewards = sum(turn.reward for turn, _ in turns[1:])
  middle = sum((~turn.time_step.is_first()) for turn, _ in turns[1:])
  np.testing.assert_array_equal(rewards, middle)
  actions = np.concatenate([turn.actions for turn, _ in turns])
  assert 0.6 < np.mean(actions == 0) < 0.9  # epsilon 0.5: 3 of 4 to the left


def test_it_stops_when_told(evaluator):
  asked = iter([False, False, True])
  seen = []
  played = evaluator.evaluate(7, lambda: next(asked), seen.append)
  assert played.scores == [] and len(seen) == 3
