"""Runs with vector rewards, from the command line's settings to an export."""

import numpy as np
import pytest
import tensorflow as tf
import train_fixtures

from tf_mmdrl.core import errors, run_files
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import playing, trainer
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.run_state import RunState

_VECTOR = (
  "environment.name=maze/exclusive",
  "agent.name=joint_mmdqn",
  "agent.utility=chebyshev:1,2",
  "schedule.steps=320",
  "evaluation.period=320",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  """A run with rewards accrued in observations."""
  path = tmp_path_factory.mktemp("joint") / "run"
  config = train_fixtures.small(*_VECTOR, "agent.accrued=true")
  trainer.train(config, RunDirectory(path))
  return path


def test_rows_have_a_column_for_each_part(run):
  rows = run_files.RunFiles(run).rows()
  last = rows[-1]
  parts = [last["evaluation_score_0"], last["evaluation_score_1"]]
  assert all(part is not None and part >= 0 for part in parts)
  # The mean of minima is at most the minimum of the means.
  assert last["evaluation_score"] <= min(parts[0], 2 * parts[1]) + 1e-6
  assert last["unit"] == max(last["unit_0"], last["unit_1"])
  assert all(np.log2(last[f"unit_{i}"]) % 1 == 0 for i in range(2))


def test_the_export_plays_and_answers_with_vectors(run):
  policy = playing.open_policy(run)
  config = policy.config.completed()
  played = playing.evaluate(policy, config)
  assert played.mean == pytest.approx(policy.score)
  assert played.vectors.shape == (len(played.scores), 2)
  model = tf.saved_model.load(str(run / "export" / str(policy.number)))
  seen = tf.zeros([3, *policy.observation_spec.shape])
  found = model.signatures["particles"](observation=seen)
  assert found["values"].shape == [3, 4, 5, 2]
  assert found["weights"].shape == [3, 4, 5]
  answer = model.signatures["action"](observation=seen)
  assert answer["q_values"].shape == [3, 4]
  np.testing.assert_allclose(
    answer["expected"], tf.reduce_mean(found["values"], axis=2), rtol=1e-5
  )
  np.testing.assert_allclose(
    answer["q_values"], policy.expected(seen), rtol=1e-5, atol=1e-6
  )
  # Nothing was earned and the discount is 0: the utility is 0, whatever comes.
  np.testing.assert_allclose(answer["q_values"], 0, atol=1e-6)
  risk = model.signatures["risk"](observation=seen, level=tf.constant(0.5))
  np.testing.assert_allclose(risk["cvar"], 0, atol=1e-6)


@pytest.mark.parametrize(
  "changes, message",
  [
    (("agent.utility=linear:1,2,3",), "weights for each of the 2 returns"),
    (("agent.utility=pareto",), "unknown utility 'pareto'"),
    (("agent.criterion=best",), "unknown criterion 'best'"),
    (("agent.utility=math:sqrt",), "utility math:sqrt raised"),
    (("agent.utility=linear:inf,1",), "weights must be finite"),
    (("environment.name=CartPole-v1",), "reward is one number; use mmdqn"),
    (("agent.name=mmdqn",), "vectors of 2; use joint_mmdqn"),
    (("environment.name=CartPole-v1", "agent.accrued=true"), "are vectors"),
  ],
)
def test_bad_input_is_one_clear_line(tmp_path, changes, message):
  with pytest.raises(errors.UserError, match=message) as info:
    config = train_fixtures.small(*_VECTOR)
    if changes == ("agent.name=mmdqn",):
      config = train_fixtures.small(_VECTOR[0])
    else:
      config = configs.change(config, changes)
    RunState(config, RunDirectory(tmp_path / "run"))
  assert "\n" not in str(info.value)
