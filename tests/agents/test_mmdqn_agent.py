"""MMDQN's update against hand-computed targets and the float64 oracle."""

import functools

import agent_fixtures as fixtures
import numpy as np
import oracle
import pytest
import tensorflow as tf
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory

from tf_mmdrl.agents import MMDQNAgent, predicting, transitions
from tf_mmdrl.core import errors
from tf_mmdrl.networks import ParticleNetwork
from tf_mmdrl.ops import bandwidths, kernels

_MODES = pytest.mark.parametrize("jit_compile", [False, True])
_KERNEL = kernels.gaussian_mixture()

# Two states, three actions, two particles. In state 1 the means are 1, 2 and 0,
# but the largest single particle (5) belongs to action 0.
_TABLE = [
  [[0.0, 1.0], [2.0, 3.0], [-1.0, 0.5]],
  [[-3.0, 5.0], [1.5, 2.5], [0.0, 0.0]],
]


# Four states, of which only action 0 is worth anything.
_CHAIN = np.zeros([4, 3, 2])
_CHAIN[:, 0, :] = np.arange(8).reshape([4, 2])


def _table_agent(table=_TABLE, **options):
  net = fixtures.TableNetwork(fixtures.OBSERVATION, table)
  return fixtures.make_agent(net, kernel=_KERNEL, **options)


@functools.cache
def _known_agent(**options):
  """`_table_agent(...)` for tests that look at losses and do not train."""
  return _table_agent(**options)


@functools.cache
def _chain_agent():
  """An agent of three steps, for the same."""
  return _table_agent(_CHAIN, n_step_update=3)


def _one(**replaced):
  """One transition from state 0 by action 1 to state 1, reward 0.5."""
  parts = dict(
    observation=fixtures.states([[0, 1]]),
    action=[[1, 0]],
    reward=[[0.5, 0.0]],
  )
  return fixtures.experience(batch=1, **{**parts, **replaced})


def _loss(agent, batch, **options):
  return agent.loss(batch, **options).loss.numpy()


@_MODES
def test_loss_is_the_mmd_to_the_greedy_target(jit_compile):
  agent = _table_agent(jit_compile=jit_compile)
  # r + gamma z with the particles of action 1, whose mean is the largest;
  # a maximum particle by particle would take 5 and 2.5.
  target = 0.5 + 0.9 * np.array([1.5, 2.5])
  wanted, _ = oracle.mmd_squared(_KERNEL, np.array([2.0, 3.0]), target)
  assert _loss(agent, _one()) == pytest.approx(wanted, rel=1e-5)
  info = agent.train(_one())
  assert info.loss.numpy() == pytest.approx(wanted, rel=1e-5)
  assert info.extra.td_loss.numpy() == pytest.approx([wanted], rel=1e-5)
  assert info.extra.td_error.numpy() == pytest.approx([np.mean(target) - 2.5])


def test_double_lets_the_online_network_choose():
  agent = _table_agent(double=True)
  online = np.array(_TABLE)
  online[1, 2] = [9.0, 9.0]  # only the online network prefers action 2
  agent._network.variables[0].assign(online)
  target = 0.5 + 0.9 * np.array([0.0, 0.0])
  wanted, _ = oracle.mmd_squared(_KERNEL, np.array([2.0, 3.0]), target)
  assert _loss(agent, _one()) == pytest.approx(wanted, rel=1e-5)


def test_terminal_and_truncated_steps():
  agent = _known_agent()
  done = _one(discount=[[0.0, 1.0]], next_step_type=[[fixtures.LAST, 0]])
  wanted, _ = oracle.mmd_squared(
    _KERNEL, np.array([2.0, 3.0]), np.array([0.5, 0.5])
  )
  assert _loss(agent, done) == pytest.approx(wanted, rel=1e-5)
  cut = _one(next_step_type=[[fixtures.LAST, 0]])
  assert _loss(agent, cut) == pytest.approx(_loss(agent, _one()), rel=1e-6)


def test_examples_that_start_at_an_episodes_end_teach_nothing():
  agent = _table_agent()
  last = _one(step_type=[[fixtures.LAST, 0]])
  assert _loss(agent, last) == 0
  before = agent._network.variables[0].numpy()
  agent.train(last)
  np.testing.assert_array_equal(agent._network.variables[0], before)


@pytest.mark.parametrize(
  "step_types, discounts, reward, factor, state",
  [
    # gamma = 0.9: 1 + 0.9 * 2 + 0.81 * 4, then 0.729 z(s_3).
    ([1, 1, 1, 1], [1, 1, 1, 1], 6.04, 0.729, 3),
    # Terminates on the second step: what follows is another episode.
    ([1, 1, 2, 0], [1, 0, 1, 1], 2.8, 0.0, 2),
    # Cut off on the second step: goes on from its last state, s_2.
    ([1, 1, 2, 0], [1, 1, 1, 1], 2.8, 0.81, 2),
    # A life lost on the first step ends learning, not the game.
    ([1, 1, 1, 1], [0, 1, 1, 1], 1.0, 0.0, 3),
  ],
)
def test_n_step(step_types, discounts, reward, factor, state):
  agent = _chain_agent()
  batch = fixtures.experience(
    batch=1,
    length=4,
    step_type=[step_types],
    observation=fixtures.states([[0, 1, 2, 3]]),
    action=[[0, 0, 0, 0]],
    reward=[[1.0, 2.0, 4.0, 8.0]],
    discount=[discounts],
  )
  target = reward + factor * _CHAIN[state, 0]
  wanted, _ = oracle.mmd_squared(_KERNEL, _CHAIN[0, 0], target)
  assert _loss(agent, batch) == pytest.approx(wanted, rel=1e-4)


def test_a_transition_is_experience_too():
  agent = _known_agent()
  batch = _one()
  transition = trajectory.Transition(
    ts.TimeStep(
      batch.step_type[:, 0],
      batch.reward[:, 0] * 0,
      batch.discount[:, 0],
      batch.observation[:, 0],
    ),
    trajectory.policy_step.PolicyStep(batch.action[:, 0]),
    ts.TimeStep(
      batch.step_type[:, 1],
      batch.reward[:, 0],
      batch.discount[:, 0],
      batch.observation[:, 1],
    ),
  )
  assert _loss(agent, transition) == pytest.approx(_loss(agent, batch))


def test_observations_of_the_ends_are_enough():
  whole = fixtures.experience(length=4)
  ends = whole._replace(
    observation=tf.gather(whole.observation, [0, 3], axis=1)
  )
  agents = [fixtures.make_agent(n_step_update=3) for _ in range(2)]
  losses = [
    agent.train(experience).loss
    for agent, experience in zip(agents, (whole, ends))
  ]
  assert losses[0] == losses[1]
  for mine, other in zip(*(agent.state_variables() for agent in agents)):
    np.testing.assert_array_equal(mine, other)


@_MODES
def test_importance_weights_scale_the_examples(jit_compile):
  batch = fixtures.experience()
  weights = tf.constant([0.0, 1.0, 2.0, 0.5, 1.0, 1.0])
  agent = fixtures.shared_agent(jit_compile=jit_compile)
  per_example = agent.loss(batch).extra.td_loss.numpy()
  info = agent.train(batch, weights=weights)
  assert info.loss.numpy() == pytest.approx(
    np.mean(weights * per_example), rel=1e-5
  )
  np.testing.assert_allclose(info.extra.td_loss, per_example, rtol=1e-5)


def test_rewards_are_scaled():
  scaled = _table_agent(reward_scale_factor=3.0)
  tripled = _one(reward=[[1.5, 0.0]])
  assert _loss(scaled, _one()) == pytest.approx(
    _loss(_known_agent(), tripled), rel=1e-6
  )


def test_masked_actions_are_never_the_target():
  spec = {"state": fixtures.OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}
  net = fixtures.TableNetwork(fixtures.OBSERVATION, _TABLE)
  agent = fixtures.make_agent(
    net,
    kernel=_KERNEL,
    time_step_spec=ts.time_step_spec(spec),
    observation_and_action_constraint_splitter=lambda o: (
      o["state"],
      o["mask"],
    ),
  )
  observation = {
    "state": fixtures.states([[0, 1]]),
    "mask": [[[1] * 3, [1, 0, 0]]],
  }
  target = 0.5 + 0.9 * np.array([-3.0, 5.0])  # action 0, the only one allowed
  wanted, _ = oracle.mmd_squared(_KERNEL, np.array([2.0, 3.0]), target)
  batch = _one(observation=observation)
  assert _loss(agent, batch) == pytest.approx(wanted, rel=1e-5)
  step = ts.restart(
    {
      "state": tf.constant(fixtures.states([1])),
      "mask": tf.constant([[0, 0, 1]]),
    },
    1,
  )
  assert agent.policy.action(step).action.numpy() == [2]
  for _ in range(10):
    assert agent.collect_policy.action(step).action.numpy() == [2]


@_MODES
def test_training_lowers_the_loss_on_a_fixed_batch(jit_compile):
  agent = fixtures.shared_agent(jit_compile=jit_compile)
  # Regression on rewards: the target network's updates do not matter.
  batch = fixtures.experience(discount=np.zeros([6, 2]))
  first = _loss(agent, batch)
  for _ in range(200):
    agent.train(batch)
  assert _loss(agent, batch) < 0.1 * first


@pytest.mark.parametrize("tau, period", [(1.0, 3), (0.25, 2)])
def test_target_network_follows(tau, period):
  agent = fixtures.make_agent(
    target_update_tau=tau, target_update_period=period
  )
  online, target = agent._network.variables, agent._target_network.variables
  for a, b in zip(online, target):
    np.testing.assert_array_equal(a, b)  # initialised to the online one
  batch = fixtures.experience()
  start = [v.numpy() for v in target]
  for _ in range(period - 1):
    agent.train(batch)
  for a, b in zip(start, target):
    np.testing.assert_array_equal(a, b)
  agent.train(batch)
  for a, b, c in zip(online, target, start):
    np.testing.assert_allclose(b, tau * a + (1 - tau) * c, rtol=1e-6, atol=1e-7)


@_MODES
@pytest.mark.parametrize("outer", [lambda f: f, tf.function])
def test_what_is_not_finite_stops_before_the_weights_change(outer, jit_compile):
  agent = fixtures.shared_agent(jit_compile=jit_compile)
  train = outer(agent.train)
  for step, where in ((1, "reward"), (2, "observation")):
    train(fixtures.experience())  # it can go on
    variables = [*agent._network.variables, *agent._optimizer.variables]
    before = [variable.numpy() for variable in variables]
    bad = fixtures.experience()
    values = getattr(bad, where).numpy()
    values[0, 0] = np.nan
    with pytest.raises(
      tf.errors.InvalidArgumentError,
      match=f"(?s)needs finite numbers.*train step.*{step}.*{where}s",
    ):
      train(bad._replace(**{where: tf.constant(values)}))
    for old, variable in zip(before, variables):
      np.testing.assert_array_equal(old, variable)
    assert agent.train_step_counter.numpy() == step
  train(fixtures.experience())


@pytest.mark.parametrize(
  "jit_compile, num_steps",
  [
    (False, 100),
    pytest.param(False, 1000, marks=pytest.mark.slow),
    pytest.param(True, 1000, marks=pytest.mark.slow),
  ],
)
def test_equal_seeds_give_equal_weights(jit_compile, num_steps):
  batches = [fixtures.experience(batch=8, seed=seed) for seed in range(50)]

  def weights():
    agent = fixtures.make_agent(
      fixtures.small_network(num_particles=40),
      jit_compile=jit_compile,
      target_update_period=10,
    )
    train = tf.function(agent.train)
    for step in range(num_steps):
      train(batches[step % 50])
    return [variable.numpy() for variable in agent._network.variables]

  for first, second in zip(weights(), weights()):
    np.testing.assert_array_equal(first, second)


# XLA compiles one of each way to compute the MMD: by pairs and by sorting.
_OTHER_KERNELS = [
  (False, bandwidths.median()),
  (False, bandwidths.annealed(10.0, 1.0, 100)),
  (False, kernels.unrectified(1.0)),
  (False, kernels.laplace(1.0)),
  (True, kernels.unrectified(1.0)),
  (True, kernels.laplace(1.0)),
]
_OTHER_KERNELS += [
  pytest.param(True, rule, marks=pytest.mark.slow)
  for rule in (bandwidths.median(), bandwidths.annealed(10.0, 1.0, 100))
]


@pytest.mark.parametrize("jit_compile, kernel", _OTHER_KERNELS)
def test_other_kernels_train(kernel, jit_compile):
  agent = fixtures.make_agent(
    fixtures.small_network(num_particles=40),
    kernel=kernel,
    jit_compile=jit_compile,
    target_update_period=10**6,
  )
  batch = fixtures.experience(batch=16)
  first = agent.loss(batch).loss.numpy()
  for _ in range(100):
    last = agent.train(batch).loss.numpy()
  assert last < 0.5 * first


def test_one_wide_particle_follows_q_learning():
  """N = 1: the gradient points where Q-learning's squared error points."""
  agent = fixtures.make_agent(
    fixtures.small_network(num_particles=1), kernel=kernels.gaussian(1e4)
  )
  batch = fixtures.experience(batch=8)
  variables = agent._network.trainable_weights
  with tf.GradientTape(persistent=True) as tape:
    info = agent.loss(batch)
    data = transitions.as_transition(batch, n=1, gamma=0.9)
    q = agent._predict(agent._network, data.observation, predicting.Use.TAKEN)
    q = q.at(data.action).mean()
    target = tf.stop_gradient(q + info.extra.td_error)
    squared = tf.reduce_mean(tf.square(target - q))
  mmd_gradient = tape.gradient(info.loss, variables)
  q_gradient = tape.gradient(squared, variables)
  flat = [
    np.concatenate([np.ravel(part) for part in gradient])
    for gradient in (mmd_gradient, q_gradient)
  ]
  cosine = flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1])
  assert cosine > 0.9999


@pytest.mark.parametrize(
  "make, message",
  [
    (
      lambda: fixtures.make_agent(
        fixtures.TableNetwork(fixtures.OBSERVATION, np.zeros([2, 4, 5]))
      ),
      r"\[B, A, N\] with A = 3 actions, got .*4, 5",
    ),
    (
      lambda: fixtures.make_agent(
        fixtures.TableNetwork(fixtures.OBSERVATION, np.zeros([2, 3]))
      ),
      r"\[B, A, N\] with A = 3",
    ),
    (lambda: fixtures.make_agent(n_step_update=0), "n_step_update .* got 0"),
    (
      lambda: fixtures.make_agent().train(fixtures.experience(length=4)),
      r"\[B, 2\] steps .* got \(6, 4\)",
    ),
    (
      lambda: MMDQNAgent(
        fixtures.TIME_STEP,
        tf.TensorSpec([], tf.float32),
        fixtures.small_network(),
        tf.keras.optimizers.Adam(),
      ),
      "discrete",
    ),
    (
      lambda: ParticleNetwork(fixtures.OBSERVATION, fixtures.ACTION, 0),
      "num_particles must be at least 1, got 0",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
