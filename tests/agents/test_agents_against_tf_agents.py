"""DQN and C51 beside TF-Agents' own, with the same weights and batch."""

import agent_fixtures as fixtures
import family
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import categorical_q_network, q_network

_BATCH = fixtures.experience(
  batch=16, discount=np.random.default_rng(0).integers(2, size=[16, 2])
)


def _same_weights(ours, theirs):
  """Ours, in theirs; both end with dense layers of the same sizes."""
  weights = [w.numpy() for w in ours.variables if w is not ours.unit]
  assert [w.shape for w in weights] == [w.shape for w in theirs.variables]
  theirs.set_weights(weights)


@pytest.mark.parametrize("double", [False, True])
def test_dqn(double):
  ours = family.make("double_dqn" if double else "dqn", target_update_period=1)
  time_step_spec, action_spec = family.specs()
  net = q_network.QNetwork(
    time_step_spec.observation, action_spec, fc_layer_params=(16, 16)
  )
  agent_class = dqn_agent.DdqnAgent if double else dqn_agent.DqnAgent
  theirs = agent_class(
    time_step_spec,
    action_spec,
    q_network=net,
    optimizer=tf.keras.optimizers.Adam(5e-3),
    gamma=family.GAMMA,
    td_errors_loss_fn=dqn_agent.common.element_wise_huber_loss,
    train_step_counter=tf.Variable(0, dtype=tf.int64),
  )
  theirs.initialize()
  for weight in ours._target_network.trainable_weights:  # not the online's
    weight.assign(-0.7 * weight)
  _same_weights(ours._network, theirs._q_network)
  _same_weights(ours._target_network, theirs._target_q_network)
  for _ in range(3):
    mine, other = ours.train(_BATCH), theirs.train(_BATCH)
    np.testing.assert_allclose(mine.loss, other.loss, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
      mine.extra.td_loss, other.extra.td_loss, rtol=1e-4, atol=1e-5
    )


def test_c51():
  ours = family.make("c51", target_update_period=1)
  time_step_spec, action_spec = family.specs()
  net = categorical_q_network.CategoricalQNetwork(
    time_step_spec.observation,
    action_spec,
    num_atoms=11,
    fc_layer_params=(16, 16),
  )
  theirs = categorical_dqn_agent.CategoricalDqnAgent(
    time_step_spec,
    action_spec,
    categorical_q_network=net,
    optimizer=tf.keras.optimizers.Adam(5e-3),
    min_q_value=-3.0,
    max_q_value=3.0,
    gamma=family.GAMMA,
    train_step_counter=tf.Variable(0, dtype=tf.int64),
  )
  theirs.initialize()
  for weight in ours._target_network.trainable_weights:
    weight.assign(-0.7 * weight)
  _same_weights(ours._network, theirs._q_network)
  _same_weights(ours._target_network, theirs._target_q_network)
  for _ in range(3):
    mine, other = ours.train(_BATCH), theirs.train(_BATCH)
    np.testing.assert_allclose(mine.loss, other.loss, rtol=1e-5, atol=1e-6)
