"""Joint MMDQN against a float64 loop, and what it says of bad input."""

import functools

import numpy as np
import oracle
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import JointReturnDistribution
from tf_mmdrl.networks import ReturnNetwork, heads
from tf_mmdrl.ops import bandwidths, kernels
from tf_mmdrl.policies import utilities, utility_names

_GAMMA, _D, _N = 0.9, 3, 5
_OBSERVATION = tf.TensorSpec([4], tf.float32)
_ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
_UNIT = np.float32([0.5, 4.0, 1.0])


def _time_step_spec(dimensions=_D):
  shape = [] if dimensions is None else [dimensions]
  return ts.time_step_spec(_OBSERVATION, tf.TensorSpec(shape, tf.float32))


def _network(head, **options):
  tf.keras.utils.set_random_seed(1)
  options = {"output_scale": 1.0, **options}
  return ReturnNetwork(
    _OBSERVATION, _ACTION, head, fc_layer_params=(8,), **options
  )


def _agent(head=None, dimensions=_D, *, network_options=(), **options):
  head = head or heads.particles(_N, dimensions)
  options = {"gamma": _GAMMA, "jit_compile": False, "unit": 1.0, **options}
  agent = agents.JointMMDQNAgent(
    _time_step_spec(dimensions),
    _ACTION,
    _network(head, **dict(network_options)),
    tf.keras.optimizers.Adam(1e-2),
    **options,
  )
  agent.initialize()
  return agent


def _experience(n=1, batch=6, dimensions=_D, size=1.0, seed=0, cut=False):
  rng = np.random.default_rng(seed)
  shape = [batch, n + 1]
  step_type = np.full(shape, ts.StepType.MID, np.int32)
  discount = np.ones(shape, np.float32)
  step_type[1, 0] = ts.StepType.LAST  # masked
  discount[2, n - 1], step_type[2, n] = 0, ts.StepType.LAST  # terminal
  if cut:  # after one step, and after two; another episode follows
    step_type[3, 1:3] = ts.StepType.LAST, ts.StepType.FIRST
    step_type[4, 2:4] = ts.StepType.LAST, ts.StepType.FIRST
  return trajectory.Trajectory(
    step_type=tf.constant(step_type),
    observation=tf.constant(rng.normal(size=[*shape, 4]), tf.float32),
    action=tf.constant(rng.integers(3, size=shape), tf.int32),
    policy_info=(),
    next_step_type=tf.constant(np.roll(step_type, -1, 1)),
    reward=tf.constant(
      size * rng.normal(size=[*shape, dimensions]), tf.float32
    ),
    discount=tf.constant(discount),
  )


def _expected(agent, experience, n, *, double=False, utility=None):
  """[B] losses, from what the networks emit, example by example."""
  unit = np.float64(agent.unit)
  step_type = experience.step_type.numpy()
  # Episodes may be cut off on the way: the next state is their last one.
  horizon = [
    next((t for t in range(1, n) if row[t] == ts.StepType.LAST), n)
    for row in step_type
  ]
  following = tf.gather(experience.observation, horizon, axis=1, batch_dims=1)
  now = _emitted(agent, agent._network, experience.observation[:, 0])
  after = _emitted(agent, agent._target_network, following)
  choose = agent._network if double else agent._target_network
  by = _emitted(agent, choose, following)
  utility = utility or (lambda g: g.sum(-1))
  losses = []
  for row in range(len(now[0])):
    if experience.step_type[row, 0] == ts.StepType.LAST:
      losses.append(0.0)
      continue
    worth = [
      (w * utility(unit * g)).sum() for g, w in zip(by[0][row], by[1][row])
    ]
    best = int(np.argmax(worth))
    reward, discount = np.zeros(agent.unit.shape), 1.0
    for t in range(horizon[row]):
      reward = reward + discount * np.float64(experience.reward[row, t])
      discount *= _GAMMA * float(experience.discount[row, t])
    target = reward / unit + discount * after[0][row][best]
    action = int(experience.action[row, 0])
    shares = now[1][row][action], after[1][row][best]
    losses.append(_loop(now[0][row][action], target, *shares))
  return np.array(losses)


def _emitted(agent, net, observation):
  """Particles in units and their weights, in float64."""
  made = JointReturnDistribution.of(net(observation)[0])
  return np.float64(made.values) / np.float64(agent.unit), np.float64(
    made.weights()
  )


def _loop(predicted, target, *shares):
  root = np.sqrt(predicted.shape[-1])  # the mean over the dimensions
  kernel = kernels.smooth_energy(1.0)
  return oracle.mmd_squared(kernel, predicted / root, target / root, *shares)[0]


def _apart(agent):
  """Gives the networks units, and makes target and online differ."""
  for net in (agent._network, agent._target_network):
    net.unit.assign(_UNIT)
    for weight in net.trainable_weights:
      shift = 0.1 if net is agent._network else -0.2
      weight.assign_add(
        shift
        * tf.sin(tf.range(tf.size(weight), dtype=tf.float32))
        .numpy()
        .reshape(weight.shape)
      )


@pytest.mark.parametrize(
  "case, n",
  [
    ("plain", 1),
    ("weighted", 3),
    ("double", 2),
    ("dueling", 1),
    ("balance", 1),
    ("cut off", 3),
  ],
)
def test_losses_equal_the_loop(case, n):
  head, options, network_options, utility = None, {}, {}, None
  if case == "weighted":
    head = heads.weighted_particles(_N, _D)
  elif case == "double":
    options["double"] = True
  elif case == "dueling":
    network_options["dueling"] = True
  elif case == "balance":
    options["score"] = utility_names.parse_score("chebyshev:1,2,1")
    utility = lambda g: (g * [1, 2, 1]).min(-1)  # noqa: E731
  agent = _agent(
    head, n_step_update=n, network_options=network_options, **options
  )
  _apart(agent)
  experience = _experience(n, cut=case == "cut off")
  found = agent.look(experience).loss_info
  wanted = _expected(
    agent, experience, n, double=case == "double", utility=utility
  )
  np.testing.assert_allclose(found.extra.td_loss, wanted, rtol=1e-4, atol=1e-6)
  assert float(found.loss) == pytest.approx(wanted.mean(), rel=1e-4)
  weights = tf.constant([2.0, 1.0, 0.0, 0.5, 1.0, 3.0])
  weighted = agent.look(experience, weights).loss_info.loss
  assert float(weighted) == pytest.approx(
    (wanted * weights.numpy()).mean(), rel=1e-4
  )


def _transition(**info):
  """Six steps; the third ends its episode, the fifth is cut off after it."""
  rng = np.random.default_rng(4)
  before, after = rng.normal(size=[2, 6, 4]).astype(np.float32)
  step_type = np.full([6], ts.StepType.MID, np.int32)
  next_type = step_type.copy()
  next_type[[2, 4]] = ts.StepType.LAST
  discount = np.float32([1, 1, 0, 1, 1, 1])
  reward = rng.normal(size=[6, _D]).astype(np.float32)
  action = tf.constant(rng.integers(3, size=6), tf.int32)
  info = {name: tf.constant(part) for name, part in info.items()}
  return trajectory.Transition(
    ts.TimeStep(*map(tf.constant, (step_type, 0 * reward, discount, before))),
    policy_step.PolicyStep(action, (), info),
    ts.TimeStep(*map(tf.constant, (next_type, reward, discount, after))),
  )


def _by_next_action(agent, data):
  """[B, A] losses if the target takes each action, by the loop."""
  step, action_step, after = data
  now, weights = _emitted(agent, agent._network, step.observation)
  following, shares = _emitted(agent, agent._target_network, after.observation)
  found = np.zeros(following.shape[:2])
  for row, best in np.ndindex(*found.shape):
    action = int(action_step.action[row])
    discount = _GAMMA * float(after.discount[row])
    reward = np.float64(after.reward[row]) / np.float64(agent.unit)
    found[row, best] = _loop(
      now[row][action],
      reward + discount * following[row][best],
      weights[row][action],
      shares[row][best],
    )
  return found


def test_a_given_policy_is_evaluated():
  """Algorithm 1's evaluation branch: one action of the policy is drawn."""
  agent = _agent()
  _apart(agent)
  policy = np.tile(np.float32([0, 1, 0]), [6, 1])
  policy[5] = [0.5, 0, 0.5]
  data = _transition(next_probabilities=policy)
  each = _by_next_action(agent, data)
  assert (np.ptp(each, axis=1) > 1e-3).sum() == 5  # but where it ends
  seen = set()
  for count in range(12):
    agent.train_step_counter.assign(count)
    got = agent._loss(data).extra.td_loss.numpy()
    np.testing.assert_allclose(got[:5], each[:5, 1], rtol=1e-4, atol=1e-6)
    (drawn,) = np.flatnonzero(np.isclose(got[5], each[5], rtol=1e-4))
    seen.add(int(drawn))
  assert seen == {0, 2}


def test_the_target_takes_the_best_of_the_actions_allowed():
  agent = _agent(score=utility_names.parse_score("chebyshev:1,2,1"))
  _apart(agent)
  mask = np.ones([6, 3], np.int32)
  plain = _transition()
  seen = _emitted(agent, agent._target_network, plain[2].observation)[0]
  worth = (seen * np.float64(agent.unit) * [1, 2, 1]).min(-1).mean(-1)
  mask[np.arange(6), worth.argmax(1)] = 0
  second = np.where(mask > 0, worth, -np.inf).argmax(1)
  data = _transition(next_mask=mask)
  each = _by_next_action(agent, data)
  for batch, best in ((plain, worth.argmax(1)), (data, second)):
    np.testing.assert_allclose(
      agent._loss(batch).extra.td_loss,
      each[np.arange(6), best],
      rtol=1e-4,
      atol=1e-6,
    )


def test_one_dimension_learns_what_a_scalar_agent_learns():
  joint = _agent(heads.particles(_N, 1), 1)
  scalar = agents.MMDQNAgent(
    _time_step_spec(None),
    _ACTION,
    _network(heads.particles(_N)),
    tf.keras.optimizers.Adam(1e-2),
    gamma=_GAMMA,
    jit_compile=False,
    unit=1.0,
  )
  scalar.initialize()
  experience = _experience(dimensions=1)
  flat = experience._replace(reward=experience.reward[..., 0])
  for _ in range(3):
    a, b = joint.train(experience), scalar.train(flat)
    assert float(a.loss) == pytest.approx(float(b.loss), rel=1e-5)
    np.testing.assert_allclose(
      a.extra.td_error, np.abs(b.extra.td_error), rtol=1e-4, atol=1e-6
    )
  pairs = zip(
    joint._network.trainable_weights, scalar._network.trainable_weights
  )
  for a, b in pairs:
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_each_return_has_its_unit_and_changing_one_changes_nothing():
  agent = _agent(unit="auto")
  size = tf.constant([1.0, 512.0, 2.0**-9])
  experience = _experience()
  same = tf.tile(experience.reward[..., :1], [1, 1, _D])
  experience = experience._replace(reward=same * size)
  agent.train(experience)
  unit = agent.unit.numpy()
  np.testing.assert_allclose(unit, unit[0] * size)
  assert np.log2(unit[0]) % 1 == 0
  before = agent._network(experience.observation[:, 0])[0].values.numpy()
  # One return becomes 256 times as large: its unit follows, others stay.
  larger = experience._replace(reward=experience.reward * [1.0, 1.0, 256.0])
  statistics = agent._follow_unit._statistics(larger, None)
  for _ in range(12):
    new, is_first = agent._unit.follow(statistics, agent.unit)
  assert not is_first.numpy().any()
  np.testing.assert_allclose((new / agent.unit)[:2], 1)
  assert (new / agent.unit)[2] > 16
  agent._follow_unit._change(new, is_first)
  after = agent._network(experience.observation[:, 0])[0].values.numpy()
  np.testing.assert_array_equal(after, before)
  np.testing.assert_allclose(agent.unit, new)


def test_learns_a_dependent_pair():
  """A step that ends: (r, -r) with r = +-1; marginals say nothing of it."""
  agent = _agent(heads.particles(16, 2), 2)
  rng = np.random.default_rng(3)
  for _ in range(300):
    sign = rng.choice([-1.0, 1.0], size=[32, 2, 1])
    experience = trajectory.Trajectory(
      step_type=tf.ones([32, 2], tf.int32),
      observation=tf.ones([32, 2, 4]),
      action=tf.zeros([32, 2], tf.int32),
      policy_info=(),
      next_step_type=tf.fill([32, 2], 2),
      reward=tf.constant(np.concatenate([sign, -sign], 2), tf.float32),
      discount=tf.zeros([32, 2]),
    )
    agent.train(experience)
  found = agent._network(tf.ones([1, 4]))[0]
  found = JointReturnDistribution.of(found).at(tf.constant([0]))
  assert found.correlation()[0, 0, 1] < -0.95
  np.testing.assert_allclose(found.mean(), [[0, 0]], atol=0.15)
  np.testing.assert_allclose(found.deviation(), [[1, 1]], atol=0.1)


def test_policies_maximise_the_utility():
  agent = _agent(score=utility_names.parse_score("linear:0,0,-1"))
  observation = tf.random.stateless_normal([9, 4], [1, 2])
  step = ts.restart(observation, 9, reward_spec=_time_step_spec().reward)
  expected = JointReturnDistribution.of(agent._network(observation)[0]).mean()
  wanted = np.argmin(expected[..., 2], axis=1)
  assert len(set(wanted)) > 1
  np.testing.assert_array_equal(agent.policy.action(step).action, wanted)
  greedy = agent.collect_policy._player.score
  assert greedy == agent.policy._player.score


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda: _agent(heads.particles(_N), None), "use mmdqn"),
    (lambda: _agent(heads.particles(_N), 2), "vectors of 2; use joint_mmdqn"),
    (lambda: _agent(heads.particles(_N, 2), 3), "2 returns.*3 parts"),
    (
      lambda: _agent(score=utility_names.parse_score("linear:1,2")),
      "one of its weights for each of the 3 returns, got 2",
    ),
    (lambda: _agent(kernel=bandwidths.median()), "on the line"),
    (lambda: _agent(reward_scale_factor=0.1), "limits are in natural rewards"),
    (lambda: _agent(munchausen=agents.Munchausen()), "Munchausen"),
    (
      lambda: agents.MMDQNAgent(
        _time_step_spec(2),
        _ACTION,
        _network(heads.particles(_N)),
        tf.keras.optimizers.Adam(),
      ),
      "vectors of 2; use joint_mmdqn",
    ),
    (
      lambda: agents.MMDQNAgent(
        _time_step_spec(None),
        _ACTION,
        _network(heads.particles(_N, 2)),
        tf.keras.optimizers.Adam(),
      ),
      "reward is one number",
    ),
    (
      lambda: _agent(
        score=utilities.Expected(
          utilities.Function(
            functools.partial(tf.reduce_sum, axis=-1, keepdims=True)
          )
        )
      ),
      "one float32 for each vector",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
