"""Algorithm 1's evaluation branch: targets of a given policy."""

import family
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.agents import targets, transitions
from tf_mmdrl.core.return_distribution import ReturnDistribution

_B, _A = 6, 3


def _data(**info):
  rng = np.random.default_rng(0)
  observation, after = rng.normal(size=[2, _B, 4]).astype(np.float32)
  action = rng.integers(_A, size=_B).astype(np.int32)
  reward = rng.normal(size=_B).astype(np.float32)
  discount = np.float32([1, 1, 0, 1, 1, 1])
  ones = tf.ones([_B], tf.int32)
  return trajectory.Transition(
    ts.TimeStep(ones, tf.zeros([_B]), tf.ones([_B]), tf.constant(observation)),
    policy_step.PolicyStep(
      tf.constant(action),
      (),
      {key: tf.constant(value) for key, value in info.items()},
    ),
    ts.TimeStep(
      ones, tf.constant(reward), tf.constant(discount), tf.constant(after)
    ),
  )


def _policy():
  policy = np.random.default_rng(1).dirichlet(np.ones(_A), _B)
  policy[0] = [0, 1, 0]  # actions that are never taken
  return policy.astype(np.float32)


@pytest.mark.parametrize(
  "name", ["dqn", "c51", "qrdqn", "iqn", "mmdqn", "weighted_mmdqn"]
)
def test_the_target_is_the_mixture_over_the_policys_actions(name):
  """Loss by loss against the mixture in float64."""
  agent, policy = family.shared(name), _policy()
  data = _data(**{transitions.NEXT_PROBABILITIES: policy})
  step, action_step, after = data
  taken = family.outputs(
    agent, agent._network, step.observation, family.Use.TAKEN
  )
  following = family.outputs(
    agent, agent._target_network, after.observation, family.Use.TARGET
  )
  wanted = []
  for b, action in enumerate(action_step.action.numpy()):
    x, p, levels = (part if part is None else part[b, action] for part in taken)
    y = (
      after.reward.numpy()[b]
      + family.GAMMA * after.discount.numpy()[b] * (following[0][b])
    )
    q = policy[b][:, None] * following[1][b]
    if name in ("qrdqn", "iqn"):
      levels = (np.arange(len(x)) + 0.5) / len(x) if levels is None else levels
      loss = sum(
        q.ravel()[j]
        * abs(levels[i] - (y.ravel()[j] < x[i]))
        * family._huber(y.ravel()[j] - x[i], 1.0)
        for i in range(len(x))
        for j in range(y.size)
      )
    else:
      loss = family.FAMILY[name].loss(agent, x, p, levels, y.ravel(), q.ravel())
    wanted.append(loss)
  got = agent._loss(data).extra.td_loss
  np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-6)


def test_vector_returns_are_mixed_as_whole_vectors():
  values = tf.reshape(tf.range(2 * 3 * 4 * 2, dtype=tf.float32), [2, 3, 4, 2])
  policy = np.float32([[0.2, 0.3, 0.5], [0, 0, 1]])
  mixed = targets.mixture(ReturnDistribution(values), tf.math.log(policy))
  assert mixed.values.shape == [2, 12, 2]
  np.testing.assert_array_equal(mixed.values[1, 5], values[1, 1, 1])
  np.testing.assert_allclose(
    mixed.weights(), np.repeat(policy, 4, axis=1) / 4, atol=1e-7
  )


def test_a_loss_of_even_targets_draws_the_policys_action():
  """FQF's loss ignores weights: each example has one action of the policy."""
  agent, policy = family.shared("fqf"), _policy()
  data = _data(**{transitions.NEXT_PROBABILITIES: policy})
  seen = set()
  for count in range(30):
    agent.train_step_counter.assign(count)
    rule = agent._learning.target_rule
    made = transitions.as_transition(data, n=1, gamma=family.GAMMA)
    values = rule(made).values.numpy()
    target, _ = agent._target_network(made.next_observation)
    after = ReturnDistribution.of(target).values.numpy()
    reward = np.asarray(made.reward)[:, None, None]
    moved = reward + np.asarray(made.discount)[:, None, None] * after
    for b in (0, 1):  # an example with a sure action, and one without
      (action,) = np.flatnonzero(
        np.abs(moved[b] - values[b]).max(axis=-1) < 1e-5
      )
      seen.add((b, int(action)))
  assert seen == {(0, 1), (1, 0), (1, 1), (1, 2)}


def test_draws_follow_the_probabilities():
  policy = np.tile(np.float32([[0.2, 0.0, 0.8]]), [4000, 1])
  values = tf.tile(tf.constant([[[0.0], [1.0], [2.0]]]), [4000, 1, 1])
  uniform = (np.arange(4000, dtype=np.float32) + 0.5) / 4000
  got = targets.drawn(ReturnDistribution(values), policy, uniform).values
  assert [int(np.sum(got == v)) for v in range(3)] == [800, 0, 3200]


def test_the_best_action_is_one_of_the_mask():
  agent = family.shared("mmdqn")
  plain = agent._learning.target_rule(
    transitions.as_transition(_data(), n=1, gamma=family.GAMMA)
  ).values.numpy()
  for only in range(_A):
    mask = np.zeros([_B, _A], bool)
    mask[:, only] = True
    data = _data(**{transitions.NEXT_MASK: mask})
    chosen = agent._learning.target_rule(
      transitions.as_transition(data, n=1, gamma=family.GAMMA)
    ).values.numpy()
    policy = np.float32(mask)
    data = _data(**{transitions.NEXT_PROBABILITIES: policy})
    given = agent._learning.target_rule(
      transitions.as_transition(data, n=1, gamma=family.GAMMA)
    )
    weights = np.asarray(given.weights()) > 0
    np.testing.assert_allclose(
      chosen, np.asarray(given.values)[weights].reshape(chosen.shape)
    )
    assert not np.array_equal(chosen, plain)
